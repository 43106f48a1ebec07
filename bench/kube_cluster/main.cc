// What a measurement of schedulers needs of a cluster, many times and fast: docs/benchmarks.md says what is
// measured, measure.py beside this drives it. Answers are JSON.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "ceiling.h"
#include "kube/client/api_client.h"
#include "kube/client/config.h"
#include "objects.h"
#include "observer.h"
#include "recorded.h"
#include "writers.h"

namespace drover::bench {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

struct Options {
  std::string kubeconfig;
  std::string name_space = "default";
  std::string scheduler = "drover";
  std::size_t writers = 64;
  int count = 0;
  int first = 0;
  std::string name = "pod";
  bool by_limits = true;  ///< nodes
  int per_rack = 512;
  int gpus = 0;             ///< pods
  std::vector<int> claims;  ///< in turns
  int gang = 0;
  std::string topology_key;
  int milli_cpus = 1000;
  bool on_nodes = false;
  double rate = 0;
  double lifetime = 0;
  int patience = 0;
  bool reasons = false;
  Ask ask = Ask::kLimits;
  RecordedOptions recorded;
};

double unix_time(WallTime time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

Status make(kube::Api& api, const kube::Resource& resource, const json& object) {
  const kube::ObjectPath collection{resource, kube::text_at(object, "/metadata/namespace")};
  const auto made = api.create(collection, object);
  if (made || made.error().kind == ErrorKind::kConflict) return {};
  return Failure(made.error());
}

Result<json> make_nodes(kube::Api& api, const Options& options) {
  static const kube::Resource kSlices{"resource.k8s.io", "v1", "resourceslices"};
  static const kube::Resource kClasses{"resource.k8s.io", "v1", "deviceclasses"};
  static const kube::Resource kTemplates{"resource.k8s.io", "v1", "resourceclaimtemplates"};
  DROVER_CHECK_OK(in_parallel(options.writers, static_cast<std::size_t>(options.count), [&](std::size_t i) {
    const auto number = options.first + static_cast<int>(i);
    const auto name = node_name(number);
    auto made = make(api, kube::kNodes,
                     node_object(name, {.by_limits = options.by_limits, .rack = number / options.per_rack}));
    if (made && !options.by_limits) made = make(api, kSlices, slice_object(name));
    return made;
  }));
  if (options.by_limits) return json{{"made", options.count}};
  DROVER_CHECK_OK(make(api, kClasses, class_object(kGpu)));
  for (int devices = 1; devices <= kGpusOfBoard; ++devices)
    DROVER_CHECK_OK(make(api, kTemplates, template_object(options.name_space, devices)));
  return json{{"made", options.count}};
}

std::string pod_name(const Options& options, std::size_t i) {
  return fmt::format("{}-{:06}", options.name, options.first + static_cast<int>(i));
}

json nth_pod(const Options& options, std::size_t i) {
  const auto number = static_cast<int>(i);
  PodWish shape{.scheduler = options.scheduler, .gpus = options.gpus, .milli_cpus = options.milli_cpus};
  if (!options.claims.empty()) shape.claimed = options.claims[i % options.claims.size()];
  if (options.gang > 0) shape.group = fmt::format("{}-{}", options.name, number / options.gang);
  if (options.on_nodes) shape.node = node_name(number / (kGpusOfNode / std::max(options.gpus, 1)));
  return pod_object(options.name_space, pod_name(options, i), shape);
}

Status make_groups(kube::Api& api, const Options& options) {
  static const kube::Resource kGroups{"scheduling.k8s.io", "v1alpha2", "podgroups"};
  if (options.gang <= 0) return {};
  return in_parallel(options.writers, static_cast<std::size_t>(options.count / options.gang),
                     [&](std::size_t i) {
                       return make(api, kGroups,
                                   group_object(options.name_space, fmt::format("{}-{}", options.name, i),
                                                options.gang, options.topology_key));
                     });
}

/// From when each was to be made to when it was seen, in ms.
json latencies(const std::map<std::string, WallTime>& due, const std::map<std::string, WallTime>& seen) {
  std::vector<double> times;
  for (const auto& [name, at] : seen)
    if (const auto found = due.find(name); found != due.end())
      times.push_back(1000 * (unix_time(at) - unix_time(found->second)));
  std::ranges::sort(times);
  if (times.empty()) return {{"count", 0}};
  const auto part = [&](double of) {
    return times[static_cast<std::size_t>(of * static_cast<double>(times.size() - 1))];
  };
  return {{"count", times.size()},
          {"median", part(0.5)},
          {"p90", part(0.9)},
          {"p99", part(0.99)},
          {"longest", times.back()}};
}

/// In an open loop when there is a rate: who is late is not waited for.
Result<json> make_pods(kube::Api& api, const Options& options) {
  DROVER_CHECK_OK(make_groups(api, options));
  std::unique_ptr<Observer> observer;
  if (options.patience > 0) {
    DROVER_TRY(observer, Observer::start(api, options.name_space, options.scheduler,
                                         options.reasons ? Seen::kReason : Seen::kBound, options.name));
  }
  const auto count = static_cast<std::size_t>(options.count);
  const auto begin = std::chrono::system_clock::now();
  const auto due = [&](std::size_t i) {
    return options.rate <= 0
               ? begin
               : begin + std::chrono::duration_cast<WallTime::duration>(
                             std::chrono::duration<double>(static_cast<double>(i) / options.rate));
  };
  std::map<std::string, WallTime> made_at;
  std::mutex mutex;
  Status deleted;
  std::jthread deleting;
  if (options.lifetime > 0)
    deleting = std::jthread([&] {
      const auto lifetime =
          std::chrono::duration_cast<WallTime::duration>(std::chrono::duration<double>(options.lifetime));
      deleted = in_parallel(options.writers, count, [&](std::size_t i) -> Status {
        std::this_thread::sleep_until(due(i) + lifetime);
        return api.remove({kube::kPods, options.name_space, pod_name(options, i)});
      });
    });
  DROVER_CHECK_OK(in_parallel(options.writers, count, [&](std::size_t i) -> Status {
    if (options.rate > 0) std::this_thread::sleep_until(due(i));
    const auto asked = options.rate > 0 ? due(i) : std::chrono::system_clock::now();
    DROVER_CHECK_OK(make(api, kube::kPods, nth_pod(options, i)));
    const std::lock_guard lock(mutex);
    made_at.emplace(pod_name(options, i), asked);
    return {};
  }));
  json answer{
      {"made", count}, {"begin", unix_time(begin)}, {"end", unix_time(std::chrono::system_clock::now())}};
  if (observer) {
    observer->wait_for(count, std::chrono::seconds(options.patience));
    answer["latency_ms"] = latencies(made_at, observer->seen());
  }
  if (deleting.joinable()) deleting.join();
  DROVER_CHECK_OK(deleted);
  return answer;
}

Result<json> remove_pods(kube::Api& api, const Options& options) {
  DROVER_CHECK_OK(in_parallel(options.writers, static_cast<std::size_t>(options.count), [&](std::size_t i) {
    return api.remove({kube::kPods, options.name_space, pod_name(options, i)});
  }));
  return json{{"removed", options.count}};
}

/// Of pods that wait already. Says on its first line that it looks.
Result<json> observe(kube::Api& api, const Options& options) {
  DROVER_TRY(const auto observer, Observer::start(api, options.name_space, options.scheduler,
                                                  options.reasons ? Seen::kReason : Seen::kBound));
  fmt::print("{{}}\n");
  std::fflush(stdout);
  observer->wait_for(static_cast<std::size_t>(options.count), std::chrono::seconds(options.patience));
  std::vector<double> times;
  for (const auto& [name, at] : observer->seen()) times.push_back(unix_time(at));
  std::ranges::sort(times);
  return json{{"seen", times.size()},
              {"first", times.empty() ? 0 : times.front()},
              {"last", times.empty() ? 0 : times.back()}};
}

Result<json> bind_waiting(kube::Api& api, const Options& options) {
  const int most = options.claims.empty() ? options.gpus : std::ranges::max(options.claims);
  DROVER_TRY(const auto began,
             bind_all(api, {options.name_space, options.scheduler, options.ask, most, options.writers}));
  return json{{"begin", unix_time(began)}};
}

Result<json> make_recorded(kube::Api& api, const Options& options) {
  auto recorded = options.recorded;
  recorded.name_space = options.name_space;
  recorded.scheduler = options.scheduler;
  return make_recorded_cluster(api, recorded);
}

using Verb = Result<json> (*)(kube::Api&, const Options&);

void add_common(CLI::App& command, Options& options) {
  command.add_option("--scheduler", options.scheduler);
  command.add_option("--namespace", options.name_space);
  command.add_option("--writers", options.writers);
  command.add_option("--count", options.count);
  command.add_option("--first", options.first, "Its number; the others follow it");
  command.add_option("--name", options.name, "What names of pods begin with");
  command.add_option("--gpus", options.gpus, "By limits, of each pod");
  command.add_option("--claims", options.claims, "Devices of a claim, of pods in turns")->delimiter(',');
  command.add_option("--patience", options.patience, "Seconds until all are seen")->capture_default_str();
  command.add_flag("--reasons", options.reasons, "Look when they are told why they wait, not when bound");
}

Result<json> run(const Options& options, Verb verb) {
  DROVER_TRY(auto config, kube::find_config(kube::ConfigSources::of_environment(options.kubeconfig)));
  DROVER_TRY(const auto api, kube::ApiClient::open(std::move(config)));
  return verb(*api, options);
}

}  // namespace
}  // namespace drover::bench

int main(int argc, char** argv) {
  using namespace drover::bench;
  Options options;
  Verb verb = nullptr;
  CLI::App app("Loads a cluster, and looks what becomes of it", "bench/kube_cluster");
  app.add_option("--kubeconfig", options.kubeconfig)->required();
  const auto add = [&](const char* name, const char* what, Verb does) {
    auto* command = app.add_subcommand(name, what);
    add_common(*command, options);
    command->callback([&verb, does] { verb = does; });
    return command;
  };
  auto* nodes = add("nodes", "Make nodes", make_nodes);
  nodes->add_flag("!--devices", options.by_limits, "With their GPUs as devices only");
  nodes->add_option("--per-rack", options.per_rack);
  auto* pods = add("pods", "Make pods", make_pods);
  pods->add_option("--gang", options.gang, "Pods of each PodGroup");
  pods->add_option("--topology-key", options.topology_key, "In which a PodGroup stays together");
  pods->add_option("--milli-cpus", options.milli_cpus);
  pods->add_flag("--on-nodes", options.on_nodes, "They run already");
  pods->add_option("--rate", options.rate, "So many in a second, whatever becomes of them");
  pods->add_option("--lifetime", options.lifetime, "Seconds, then they are deleted");
  add("remove", "Delete pods that `pods` has made", remove_pods);
  add("observe", "Look when pods that wait are bound", observe);
  auto* ceiling = add("ceiling", "Bind all that wait where it was decided before", bind_waiting);
  const std::map<std::string, Ask> asks{
      {"limits", Ask::kLimits}, {"claims", Ask::kClaims}, {"limits-by-claims", Ask::kLimitsByClaims}};
  ceiling->add_option("--ask", options.ask)->transform(CLI::CheckedTransformer(asks));
  auto* recorded =
      add("recorded", "Make a recorded cluster, and its pods one after the other", make_recorded);
  recorded->add_option("--data", options.recorded.data)->capture_default_str();
  recorded->add_option("--list", options.recorded.list)->capture_default_str();
  recorded->add_option("--seed", options.recorded.seed)->capture_default_str();
  app.require_subcommand(1);
  CLI11_PARSE(app, argc, argv);
  const auto done = run(options, verb);
  if (!done) {
    fmt::print(stderr, "bench/kube_cluster: {}\n", to_string(done.error()));
    return 1;
  }
  fmt::print("{}\n", done->dump());
}

#include "recorded.h"

#include <fmt/format.h>

#include <thread>

#include "objects.h"
#include "observer.h"
#include "openb/arrivals.h"
#include "openb/trace.h"
#include "writers.h"

namespace drover::bench {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kWriters = 16;
constexpr auto kSettled = 5s;  ///< without another pod being bound

std::string name_of(std::size_t pod) {
  return fmt::format("pod-{:06}", pod);
}

Status make_nodes(kube::Api& api, const Trace& trace, const Arrivals& arrivals) {
  return in_parallel(kWriters, arrivals.nodes.size(), [&](std::size_t i) -> Status {
    const auto& node = trace.nodes[static_cast<std::size_t>(arrivals.nodes[i])];
    const NodeShape shape{.gpus = node.gpus,
                          .milli_cpus = static_cast<int>(node.milli_cpus),
                          .memory_mib = node.memory_mib,
                          .model = trace.models[static_cast<std::size_t>(node.model)]};
    return api.create({kube::kNodes}, node_object(node_name(static_cast<int>(i)), shape)).map([](auto&&) {});
  });
}

Status make_pod(kube::Api& api, const PodWish& shape, const RecordedOptions& options, std::size_t number) {
  return api.create({kube::kPods, options.name_space}, pod_object(options.name_space, name_of(number), shape))
      .map([](auto&&) {});
}

void settle(const Observer& observer) {
  for (auto bound = observer.seen().size();;) {
    std::this_thread::sleep_for(kSettled);
    const auto now = observer.seen().size();
    if (now == bound) return;
    bound = now;
  }
}

}  // namespace

Result<nlohmann::json> make_recorded_cluster(kube::Api& api, const RecordedOptions& options) {
  DROVER_TRY(const auto recorded, read_trace(options.data, options.list));
  const auto trace = without_shares(recorded);
  const auto arrivals = make_arrivals(trace, options.seed);
  DROVER_CHECK_OK(make_nodes(api, trace, arrivals));
  DROVER_TRY(const auto observer, Observer::start(api, options.name_space, options.scheduler, Seen::kBound));
  const auto shape_of = [&](std::size_t pod) -> const PodShape& {
    return trace.shapes[static_cast<std::size_t>(arrivals.pods[pod])];
  };
  const auto allocated = [&](std::size_t come) {
    const auto seen = observer->seen();
    std::int64_t milli = 0;
    for (std::size_t i = 0; i < come; ++i)
      if (seen.contains(name_of(i))) milli += shape_of(i).demand();
    return 100.0 * static_cast<double>(milli) / static_cast<double>(trace.capacity());
  };
  nlohmann::json answer{{"pods", arrivals.pods.size()}, {"nodes", arrivals.nodes.size()}};
  std::int64_t offered = 0;
  for (std::size_t i = 0; i < arrivals.pods.size(); ++i) {
    const auto& pod = shape_of(i);
    DROVER_CHECK_OK(make_pod(api,
                             {.scheduler = options.scheduler,
                              .gpus = pod.gpus,
                              .milli_cpus = static_cast<int>(pod.milli_cpus),
                              .memory_mib = pod.memory_mib},
                             options, i));
    offered += pod.demand();
    if (answer.contains("100") || offered < trace.capacity()) continue;
    settle(*observer);
    answer["100"] = allocated(i + 1);
  }
  settle(*observer);
  answer[std::to_string(kOfferedPercent)] = allocated(arrivals.pods.size());
  return answer;
}

}  // namespace drover::bench

// How long `drover kube scheduler` decides, without an API server: nodes with 8 GPUs each, pods that run, and
// pods that come.

#include <fmt/format.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <vector>

#include "kube/scheduler/claims/claim.h"
#include "kube/scheduler/claims/slice.h"
#include "kube/scheduler/scheduler.h"
#include "kube_cluster/objects.h"

namespace {

using namespace drover;
using namespace drover::kube::scheduler;
using Clock = std::chrono::steady_clock;

constexpr int kGpus = 8;

struct Load {
  int nodes = 5000;
  int pods = 30000;  ///< that run
  int rounds = 200;  ///< of one pod each
  int burst = 1000;  ///< at once
  int waiting = 0;   ///< that do not fit
  int gang = 512;    ///< pods of a gang that needs whole nodes of one rack; 0: none
  int racks = 8;
  int claims = 2048;  ///< pods at once, with claims of 1 to 4 devices of one board; 0: none
};

Node make_node(const std::string& name, int rack) {
  Node node{.name = name};
  node.labels = {{"kubernetes.io/hostname", name}, {"rack", fmt::format("r{}", rack)}};
  node.taints = std::make_shared<const Taints>();
  node.allocatable = {.cpu = 96'000, .memory = 1LL << 40, .others = {{kGpuResource, kGpus}}};
  node.most_pods = 110;
  return node;
}

gpu::Inventory make_gpus(const std::string& node) {
  gpu::Inventory inventory{.driver_version = "535.104.05"};
  for (int i = 0; i < kGpus; ++i)
    inventory.devices.push_back({.uuid = fmt::format("{}-{}", node, i), .index = i, .model = "NVIDIA A100"});
  inventory.links.assign(kGpus, std::vector<gpu::Link>(kGpus, {12, gpu::PcieLevel::kAcross}));
  return inventory;
}

PodObject make_pod(const std::string& name, int gpus, int cpus = 1) {
  PodTemplate made{.scheduler_name = "drover"};
  made.requests = {.cpu = 1000 * cpus, .memory = 1 << 30, .others = {{kGpuResource, gpus}}};
  PodObject object;
  object.pod.uid = object.pod.name = name;
  object.pod.name_space = "team";
  object.pod.created = TimePoint(std::chrono::seconds(10));
  object.pod.labels = std::make_shared<const Labels>(Labels{{"app", "train"}});
  object.pod.made_from = std::make_shared<const PodTemplate>(made);
  return object;
}

double milliseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

std::size_t bound(const Round& round) {
  std::size_t count = 0;
  for (const auto& start : round.starts) count += start.bindings.size();
  return count;
}

void confirm(Scheduler& scheduler, const Round& round, int gpus) {
  for (const auto& start : round.starts)
    for (const auto& binding : start.bindings) {
      auto pod = make_pod(binding.pod.uid, gpus);
      pod.pod.node_name = binding.node;
      pod.pod.gpus = binding.gpus;
      scheduler.put_pod(pod);
    }
}

/// Nodes of their own, all free, and a gang that fills as many of them in one rack.
void run_gang(const Load& load) {
  Scheduler scheduler;
  const kube::Resource groups{"scheduling.x-k8s.io", "v1alpha1", "podgroups"};
  for (int i = 0; i < load.nodes; ++i) {
    const auto name = fmt::format("node-{:05}", i);
    scheduler.put_node(make_node(name, i % load.racks), make_gpus(name));
  }
  (void)scheduler.decide(TimePoint(std::chrono::hours(1)));
  GangGroup group{.minimum = load.gang};
  group.topology_key = "rack";
  scheduler.gangs().put_object(groups, "team", "large", group);
  for (int rank = 0; rank < load.gang; ++rank) {
    auto pod = make_pod(fmt::format("large-{:04}", rank), kGpus);
    GangMember member{.gang = {GangKind::kCoscheduling, "team", "large"}, .rank = {rank}};
    member.object = GangObject{groups, "PodGroup", "large"};
    pod.gang = member;
    scheduler.put_pod(pod);
  }
  const auto begin = Clock::now();
  const auto round = scheduler.decide(TimePoint(std::chrono::hours(1)));
  fmt::print("a gang of {} in one of {} racks, on {} nodes: {:.1f} ms\n", bound(round), load.racks,
             load.nodes, milliseconds(Clock::now() - begin));
}

/// As a template of one makes it for a pod.
nlohmann::json make_claim(const PodObject& pod, int devices) {
  const auto& uid = pod.pod.uid;
  return {{"apiVersion", "resource.k8s.io/v1"},
          {"kind", "ResourceClaim"},
          {"metadata",
           {{"name", uid + "-gpus"},
            {"namespace", pod.pod.name_space},
            {"uid", uid + "-claim"},
            {"ownerReferences",
             {{{"apiVersion", "v1"}, {"kind", "Pod"}, {"name", uid}, {"uid", uid}, {"controller", true}}}}}},
          {"spec", bench::template_object(pod.pod.name_space, devices)["spec"]["spec"]}};
}

/// Nodes whose GPUs are devices, and pods with claims.
void run_claims(const Load& load) {
  Scheduler scheduler;
  const TimePoint now(std::chrono::hours(1));
  scheduler.put_device_class(*read_device_class(bench::class_object("")));
  for (int i = 0; i < load.nodes; ++i) {
    auto node = make_node(bench::node_name(i), i % load.racks);
    node.allocatable.others.clear();
    scheduler.put_node(node, {});
    scheduler.put_slice(*read_resource_slice(bench::slice_object(node.name)));
  }
  (void)scheduler.decide(now);
  for (int i = 0; i < load.claims; ++i) {
    auto pod = make_pod(fmt::format("claims-{:06}", i), 0);
    pod.pod.claims = {
        {.entry = "gpus", .claim = pod.pod.uid + "-gpus", .from_template = true, .needed = true}};
    scheduler.put_claim(*read_resource_claim(make_claim(pod, 1 + i % 4)));
    scheduler.put_pod(std::move(pod));
  }
  auto begin = Clock::now();
  scheduler.look_ahead();
  const auto ahead = Clock::now() - begin;
  begin = Clock::now();
  std::size_t count = 0;
  Clock::duration first{};
  const auto round = scheduler.decide(now, [&](const auto& start) {
    if (count == 0) first = Clock::now() - begin;
    count += start.bindings.size();
  });
  const auto all = Clock::now() - begin;
  fmt::print("{} pods with claims: looked ahead in {:.1f} ms, then {:.1f} ms, the first after {:.1f} ms\n",
             count, milliseconds(ahead), milliseconds(all), milliseconds(first));
  for (const auto& [uid, reasons] : round.waiting) {
    fmt::print("{} waits: {}\n", uid, reasons.list.front().text);
    break;
  }
}

void run(const Load& load) {
  Scheduler scheduler;
  const TimePoint now(std::chrono::hours(1));
  auto begin = Clock::now();
  for (int i = 0; i < load.nodes; ++i) {
    const auto name = fmt::format("node-{:05}", i);
    scheduler.put_node(make_node(name, i % load.racks), make_gpus(name));
  }
  for (int i = 0; i < load.pods; ++i) {
    auto pod = make_pod(fmt::format("old-{:06}", i), 1);
    pod.pod.node_name = fmt::format("node-{:05}", i / kGpus % load.nodes);
    pod.pod.gpus = {fmt::format("{}-{}", pod.pod.node_name, i % kGpus)};
    scheduler.put_pod(pod);
  }
  for (int i = 0; i < load.waiting; ++i)
    scheduler.put_pod(make_pod(fmt::format("wait-{:06}", i), kGpus, 200));
  fmt::print("told of {} nodes, {} pods, {} that wait: {:.0f} ms\n", load.nodes, load.pods, load.waiting,
             milliseconds(Clock::now() - begin));
  begin = Clock::now();
  (void)scheduler.decide(now);
  fmt::print("first decision: {:.1f} ms\n", milliseconds(Clock::now() - begin));

  std::vector<double> times;
  for (int i = 0; i < load.rounds; ++i) {
    scheduler.put_pod(make_pod(fmt::format("new-{:06}", i), 1));
    begin = Clock::now();
    const auto round = scheduler.decide(now);
    times.push_back(milliseconds(Clock::now() - begin));
    if (bound(round) != 1) fmt::print("{} were bound\n", bound(round));
    confirm(scheduler, round, 1);
  }
  std::ranges::sort(times);
  fmt::print("one pod: median {:.2f} ms, p99 {:.2f} ms\n", times[times.size() / 2],
             times[times.size() * 99 / 100]);

  for (int i = 0; i < load.burst; ++i) scheduler.put_pod(make_pod(fmt::format("burst-{:06}", i), 1));
  begin = Clock::now();
  const auto round = scheduler.decide(now);
  fmt::print("{} pods at once: {:.1f} ms\n", bound(round), milliseconds(Clock::now() - begin));
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  fmt::print("memory: {} MiB\n", usage.ru_maxrss / 1024);
}

}  // namespace

int main(int argc, char** argv) {
  Load load;
  CLI::App app("How long the scheduler of a cluster decides");
  app.add_option("--nodes", load.nodes);
  app.add_option("--pods", load.pods);
  app.add_option("--rounds", load.rounds);
  app.add_option("--burst", load.burst);
  app.add_option("--waiting", load.waiting);
  app.add_option("--gang", load.gang);
  app.add_option("--racks", load.racks);
  app.add_option("--claims", load.claims);
  CLI11_PARSE(app, argc, argv);
  run(load);
  if (load.gang > 0) run_gang(load);
  if (load.claims > 0) run_claims(load);
}

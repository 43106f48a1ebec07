#pragma once

// Nodes and pods for tests of the scheduler, and what it decides as lines.

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kube/scheduler/scheduler.h"
#include "placement/testing/clusters.h"

namespace drover::kube::scheduler::testing {

inline constexpr TimePoint kMoment{std::chrono::hours(1)};

inline Node gpu_node(const std::string& name, std::int64_t gpus = 4) {
  Node node{.name = name};
  node.labels = {{"kubernetes.io/hostname", name}};
  node.taints = std::make_shared<const Taints>();
  node.allocatable = {.cpu = 16'000, .memory = 64LL << 30, .others = {{kGpuResource, gpus}}};
  node.most_pods = 110;
  return node;
}

/// Every two GPUs "<name>-0" … are joined by `nvlinks`, or none.
inline gpu::Inventory gpus_of(const std::string& name, int count, int nvlinks = 0) {
  return placement::testing::node(name, {.count = count, .nvlinks = nvlinks}).inventory;
}

struct Wants {
  std::int64_t gpus = 0;
  std::int64_t priority = 0;
  std::string scheduler = "drover";
};

inline Pod asking_pod(const std::string& name, const Wants& wants) {
  PodTemplate made{.scheduler_name = wants.scheduler, .priority = wants.priority};
  made.requests = {.cpu = 1000, .memory = 1 << 20};
  if (wants.gpus > 0) made.requests.others[kGpuResource] = wants.gpus;
  Pod pod{.uid = "uid-" + name, .name_space = "team", .name = name};
  pod.created = TimePoint(std::chrono::seconds(10));
  pod.labels = std::make_shared<const Labels>();
  pod.made_from = std::make_shared<const PodTemplate>(std::move(made));
  return pod;
}

template <typename Change>
Pod changed(Pod pod, const Change& change) {
  auto made = *pod.made_from;
  change(made);
  pod.made_from = std::make_shared<const PodTemplate>(std::move(made));
  return pod;
}

inline GangMember of_gang(const std::string& name, int size, std::int64_t rank = 0) {
  return {.gang = {GangKind::kDrover, "team", name}, .rank = {rank}, .size = size};
}

inline PodObject gang_pod(const std::string& name, int size, std::int64_t rank, const Wants& wants) {
  return {asking_pod(fmt::format("{}-{}", name, rank), wants), of_gang(name, size, rank)};
}

/// GPUs "<node>-0" … as devices "gpu-0" …, of two models in turn.
inline ResourceSlice slice_of(const std::string& node, int gpus) {
  ResourceSlice slice{.name = "slice-" + node, .driver = "gpu.example", .pool = node};
  slice.nodes.node_name = node;
  for (int i = 0; i < gpus; ++i) {
    const auto attribute = [](const char* name, std::string value) {
      return std::make_shared<const DeviceAttribute>(DeviceAttribute{name, std::move(value)});
    };
    DeviceKind kind{.driver = slice.driver};
    kind.attributes = {attribute("model", i % 2 == 0 ? "even" : "odd"), attribute("type", "gpu"),
                       attribute("uuid", fmt::format("{}-{}", node, i))};
    slice.devices.push_back(
        {.name = fmt::format("gpu-{}", i), .kind = std::make_shared<const DeviceKind>(kind)});
  }
  return slice;
}

inline ResourceClaim claim_for(const std::string& pod, int count, const std::string& selector = "") {
  DeviceWish wish{.device_class = "gpu", .count = count};
  if (!selector.empty()) wish.selectors = {selector};
  ClaimSpec spec;
  spec.requests = {{"gpus", {wish}}};
  ResourceClaim claim{.uid = "claim-uid-" + pod, .name_space = "team", .name = "claim-" + pod};
  claim.owner_uid = "uid-" + pod;
  claim.spec = std::make_shared<const ClaimSpec>(spec);
  return claim;
}

inline PodObject claiming(const std::string& name) {
  PodObject object{asking_pod(name, {})};
  object.pod = changed(object.pod, [](auto& made) { made.resource_claims = {"gpus"}; });
  object.pod.claims = {{"gpus", "claim-" + name, true, true}};
  return object;
}

/// "train on a: a-0 a-1" for each that starts.
inline std::vector<std::string> started(const Round& round) {
  std::vector<std::string> lines;
  for (const auto& start : round.starts)
    for (const auto& binding : start.bindings) {
      auto line = fmt::format("{} on {}:", binding.pod.name, binding.node);
      for (const auto& gpu : binding.gpus) line += " " + gpu;
      lines.push_back(std::move(line));
    }
  return lines;
}

/// "train: a/gpu-1" for each device that claims get.
inline std::vector<std::string> devices_in(const Round& round) {
  std::vector<std::string> devices;
  for (const auto& start : round.starts)
    for (const auto& binding : start.bindings)
      for (const auto& claim : binding.claims)
        for (const auto& device : claim.allocation->devices)
          devices.push_back(fmt::format("{}: {}/{}", binding.pod.name, device.id.pool, device.id.device));
  return devices;
}

inline std::vector<std::string> reasons_of(const Round& round, const std::string& name) {
  const auto found = round.waiting.find("uid-" + name);
  return found == round.waiting.end() ? std::vector<std::string>{} : placement::describe(found->second);
}

}  // namespace drover::kube::scheduler::testing

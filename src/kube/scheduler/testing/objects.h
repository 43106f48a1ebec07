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

inline std::vector<std::string> reasons_of(const Round& round, const std::string& name) {
  const auto found = round.waiting.find("uid-" + name);
  return found == round.waiting.end() ? std::vector<std::string>{} : placement::describe(found->second);
}

}  // namespace drover::kube::scheduler::testing

#pragma once

// Nodes and requests for tests, in one expression each.

#include <string>
#include <vector>

#include "placement/cluster.h"
#include "placement/node.h"
#include "placement/request.h"

namespace drover::placement::testing {

inline constexpr std::uint64_t kGiB = 1ULL << 30;

struct Gpus {
  int count = 0;
  std::string model = "V100";
  std::uint64_t memory = 16 * kGiB;
  int nvlinks = 0;  ///< between every two
};

/// 64 CPUs and 256 GiB; GPUs are named "<name>-0" and so on.
inline Node node(const std::string& name, const Gpus& gpus) {
  Node node{.name = name, .milli_cpus = 64'000, .memory_bytes = 256 * kGiB};
  node.inventory.driver_version = "535.104.05";
  const auto count = static_cast<std::size_t>(gpus.count);
  for (std::size_t i = 0; i < count; ++i) {
    gpu::Device device{
        .uuid = name + "-" + std::to_string(i), .index = static_cast<int>(i), .model = gpus.model};
    device.memory_bytes = gpus.memory;
    node.inventory.devices.push_back(device);
  }
  node.inventory.links.assign(count,
                              std::vector<gpu::Link>(count, {gpus.nvlinks, gpu::PcieLevel::kSameNuma}));
  for (std::size_t i = 0; i < count; ++i) node.inventory.links[i][i] = {0, gpu::PcieLevel::kSameDevice};
  return node;
}

/// Nodes "n0", "n1" … with that many GPUs each.
inline Cluster cluster_of(int nodes, int gpus_each, NodePolicy policy = NodePolicy::kPack) {
  Cluster cluster(policy);
  for (int i = 0; i < nodes; ++i) cluster.set_node(node("n" + std::to_string(i), {.count = gpus_each}));
  return cluster;
}

inline Request gpus(int count) {
  Request request;
  request.gpus.push_back({count, {}});
  return request;
}

/// A part of one GPU.
inline Request share(int milli, std::int64_t milli_cpus = 1000) {
  auto request = gpus(1);
  request.share.milli = milli;
  request.milli_cpus = milli_cpus;
  return request;
}

inline Request cpu_only(std::int64_t milli_cpus) {
  Request request;
  request.milli_cpus = milli_cpus;
  return request;
}

}  // namespace drover::placement::testing

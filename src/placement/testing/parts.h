#pragma once

// GPUs in MIG mode, and requests for parts of them, for tests.

#include <string>
#include <vector>

#include "placement/node.h"
#include "placement/parts.h"
#include "placement/request.h"

namespace drover::placement::testing {

/// As an A100 with 40 GB can be cut, but for 1g.10gb.
inline gpu::MigGpu a100_parts() {
  const auto profile = [](const char* name, unsigned id, unsigned slices, unsigned instances, unsigned size,
                          const std::vector<unsigned>& starts) {
    gpu::MigProfile made{.name = name, .id = id, .slices = slices, .instances = instances};
    made.attributes.memory_bytes = size * (5ULL << 30);
    for (const auto start : starts) made.placements.push_back({start, size});
    return made;
  };
  return {{profile("7g.40gb", 0, 7, 1, 8, {0}), profile("4g.20gb", 5, 4, 1, 4, {0}),
           profile("3g.20gb", 9, 3, 2, 4, {0, 4}), profile("2g.10gb", 14, 2, 3, 2, {0, 2, 4}),
           profile("1g.5gb", 19, 1, 7, 1, {0, 1, 2, 3, 4, 5, 6}),
           profile("1g.5gb.me", 20, 1, 1, 1, {0, 1, 2, 3, 4, 5, 6})},
          {}};
}

inline Instance instance_of(const std::string& profile, unsigned start) {
  const auto facts = a100_parts();
  const auto* found = facts.profile(profile);
  return {found->id, {start, found->placements.front().size}};
}

/// The node with these of its GPUs in MIG mode.
inline Node with_mig(Node node, const std::vector<std::size_t>& gpus) {
  for (const auto i : gpus) {
    auto& device = node.inventory.devices.at(i);
    device.mig = gpu::MigMode::kEnabled;
    device.unhealthy = gpu::kInMigMode;
    node.mig[device.uuid] = a100_parts();
  }
  return node;
}

inline Request part_request(const std::string& profile, int count = 1) {
  Request request;
  request.gpus.push_back({count, {}});
  request.part = profile;
  request.share = workload::share_of_part(profile).value();
  return request;
}

}  // namespace drover::placement::testing

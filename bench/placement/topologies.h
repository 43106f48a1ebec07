#pragma once

// The machines that the benchmark looks at: from a file, and made up. Values.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "placement/wiring.h"

namespace drover::bench {

struct Topology {
  std::string name;
  std::vector<std::vector<gpu::Link>> links;  ///< square, symmetric
  std::vector<std::optional<int>> numa;       ///< per GPU

  int gpus() const { return static_cast<int>(links.size()); }
  placement::Wiring wiring() const { return {links, numa}; }
};

/// Reads {"name": {"links": [[0, 2], [2, 0]], "numa": [0, 1]}, …}: NVLinks of every pair, and NUMA nodes
/// where they are known; other fields ("unit", "src") are for people. GPUs of one NUMA node are nearer to
/// each other over PCIe than GPUs of two; without NUMA nodes PCIe levels stay unknown. One mistake refuses
/// the whole file, all are named.
Result<std::vector<Topology>> read_topologies(const std::string& file);

/// Random graphs, rings, hypercubes, boards whose NVLinks and NUMA nodes disagree, two boards in one machine,
/// switches: 8 and 16 GPUs, some with PCIe levels. The same seed makes the same machines.
std::vector<Topology> made_up_topologies(std::uint64_t seed);

}  // namespace drover::bench

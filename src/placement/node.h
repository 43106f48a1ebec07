#pragma once

// A machine as placement sees it: its devices, how they are wired, and what else it offers. A value, made by
// discovery, by a Kubernetes node or by a benchmark. Devices are named by UUID; `inventory.links` has NVLinks
// and PCIe levels of every pair.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gpu/device.h"
#include "gpu/host.h"
#include "gpu/mig_facts.h"

namespace drover::placement {

struct Node {
  std::string name;
  gpu::Inventory inventory;
  /// How those in MIG mode can be cut, by UUID, and the instances there that are none of ours: nobody touches
  /// them.
  std::map<std::string, gpu::MigGpu> mig;
  std::vector<gpu::NumaNode> numa;  ///< with their CPUs; empty when unknown
  std::vector<gpu::Nic> nics;
  std::int64_t milli_cpus = 0;
  std::uint64_t memory_bytes = 0;
  gpu::CpuFeatures cpu;  ///< what programs may use of its CPUs
  /// What work may ask for by name: "rack" → {"r7"}, "cpu" → {"x86-64-v3", "avx512f"}.
  std::map<std::string, std::vector<std::string>> attributes;
  /// Ports that programs have which are none of our tasks. Only of this machine, and only as far as it is
  /// known.
  std::set<int> foreign_ports;
  std::string cordoned;  ///< why it takes no new work, in words; empty when it does

  bool operator==(const Node&) const = default;
};

}  // namespace drover::placement

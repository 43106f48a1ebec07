#pragma once

// What the machine offers besides GPUs: CPUs, memory, NUMA nodes; from hwloc, or from a simulator profile.
// Values; the two functions block and are thread safe.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "gpu/cpu.h"
#include "gpu/machine_facts.h"

namespace drover::gpu {

struct NumaNode {
  int id = 0;             ///< as the kernel numbers it
  std::vector<int> cpus;  ///< ascending; may be empty (memory without CPUs)

  bool operator==(const NumaNode&) const = default;
};

/// A network card, by a name that RDMA or plain traffic uses. A card that has both is there under both.
struct Nic {
  std::string name;              ///< "mlx5_0", "eth0"
  std::optional<int> numa_node;  ///< absent when unknown

  bool operator==(const Nic&) const = default;
};

struct HostFacts {
  int cpus = 0;                    ///< online
  std::uint64_t memory_bytes = 0;  ///< of the machine, not what is free
  std::uint64_t disk_bytes = 0;    ///< size of the file system asked about
  std::vector<NumaNode> numa;      ///< by id; never empty
  std::vector<Nic> nics;           ///< by name; those on a PCI bus
  CpuFeatures cpu;                 ///< what programs may use of its CPUs

  bool operator==(const HostFacts&) const = default;
};

/// The machine that this runs on. `folder` (the state folder) says which file system the disk size is of.
Result<HostFacts> host_facts(const std::string& folder);

/// The machine that a profile of the simulator describes: docs/simulator.md. Its CPU is the real one where
/// the profile names none.
Result<HostFacts> simulated_host_facts(const std::string& profile);

/// Its driver, CPU and GPUs; of these, what images are held against.
Result<MachineFacts> simulated_machine(const std::string& profile);

}  // namespace drover::gpu

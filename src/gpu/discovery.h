#pragma once

// Discovery: everything that can be known of this machine's GPUs, from NVML and, where NVML is silent, from
// the kernel. Never fails: what cannot be found out is absent, and says why in `problems`. One GPU that does
// not answer hides neither the others nor what is known of itself. Blocks while the driver answers; thread
// safe.
//
//   auto inventory = discover(Nvml::load(), {.numa = host.numa});
//   auto simulated = discover(Nvml::load(simulation.nvml_library),
//                             {.kernel = std::nullopt, .numa = host.numa, .simulation = simulation.profile});

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "gpu/device.h"
#include "gpu/host.h"
#include "gpu/kernel.h"
#include "gpu/nvml.h"

namespace drover::gpu {

struct DiscoveryOptions {
  std::optional<Kernel> kernel = Kernel();  ///< none in a simulation: the real machine is another one
  std::vector<NumaNode> numa;  ///< of the host: tells a GPU's node from its CPUs when nothing else does
  std::string simulation;      ///< profile name; "" for the real machine
};

/// `nvml` may be the error that loading it gave: it becomes a problem of the machine.
Inventory discover(const Result<Nvml>& nvml, const DiscoveryOptions& options);

}  // namespace drover::gpu

#pragma once

// Who has this machine's GPUs open without having been given them: gpu/strangers.h over what the driver
// tells, the GPUs' nodes, and the cgroups of tasks. Blocks; thread safe.

#include <map>
#include <string>
#include <vector>

#include "engine/ports.h"
#include "gpu/usage_sampler.h"
#include "hardware.h"
#include "share/host_shares.h"

namespace drover {

struct StrangerSources {
  const Hardware& hardware;
  gpu::UsageSampler& usage;
  const std::vector<std::string>& excused;  ///< programs
  const share::HostShares& shares;          ///< whose processes serve tasks
};

/// engine::Ports::strangers.
std::map<std::string, std::string> strangers_on(const std::vector<gpu::Device>& devices,
                                                const std::vector<engine::TaskProcesses>& tasks,
                                                const StrangerSources& sources);

}  // namespace drover

#pragma once

// The device nodes of a simulated machine: the files that NVIDIA's driver would have made in /dev. Blocks;
// needs the right to make device nodes.

#include <set>
#include <string>
#include <vector>

#include "base/result.h"

namespace drover::gpu {

/// Of NVIDIA's GPUs and nvidiactl, in the kernel's list of allocated devices.
inline constexpr unsigned kNvidiaMajor = 195;

/// Numbers of the character drivers in a text like /proc/devices.
std::set<unsigned> majors_in_use(const std::string& devices);

/// Makes `folder` hold exactly nvidia<minor> for each minor, nvidiactl, nvidia-uvm and nvidia-uvm-tools. What
/// is right already is kept. No node may lead to a driver that this machine really has (`in_use`): then
/// another number is taken, out of those that the kernel's list leaves for local use.
Status make_simulated_devices(const std::string& folder, const std::vector<int>& minors,
                              const std::set<unsigned>& in_use);

/// Makes <folder>/nvidia-caps have the two nodes that the driver has of its own accord; those of MIG
/// instances are made when somebody gets them (mig_nodes.h). After make_simulated_devices(), with the same
/// `in_use`.
Status make_simulated_capabilities(const std::string& folder, std::set<unsigned> in_use);

}  // namespace drover::gpu

#pragma once

// This machine as placement sees it.

#include <map>
#include <string>
#include <vector>

#include "gpu/host.h"
#include "gpu/inventory_watch.h"
#include "placement/node.h"

namespace drover {

using Attributes = std::map<std::string, std::vector<std::string>>;

/// Of this machine, as it calls itself.
std::string host_name();

/// Tells in the log which GPUs there are, and what is wrong with them.
void log_inventory(const gpu::Inventory& inventory);

/// A sentence for whoever has just started a daemon for the first time: what it has, and what to type next.
/// `socket`: where it serves; "" for where the CLI looks by itself.
std::string first_steps(const gpu::Inventory& inventory, const std::string& socket);

/// What the running kernel says of itself, and what the machine's CPU is at least: "cpu_arch" and "cpu".
Attributes host_attributes(const gpu::CpuFeatures& cpu);

/// `given` are the attributes that do not change; those of the driver and the GPUs ("driver", "cuda",
/// "gpu_model") are added unless they are given.
placement::Node describe_node(std::string name, const gpu::HostFacts& facts, gpu::Sight sight,
                              const Attributes& given);

}  // namespace drover

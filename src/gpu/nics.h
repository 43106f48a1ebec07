#pragma once

// The network cards of a machine, from sysfs below a root folder ("/", or a tree that a test built). Blocking
// file reads; thread safe; what cannot be read is not listed.

#include <string>
#include <vector>

#include "gpu/host.h"

namespace drover::gpu {

/// RDMA devices and network interfaces that sit on a PCI function, also by way of virtio, sorted by name.
/// Bridges, tunnels and other interfaces that are only made of software are left out.
std::vector<Nic> find_nics(const std::string& root = "/");

}  // namespace drover::gpu

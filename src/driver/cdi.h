#pragma once

// The Container Device Interface and NVIDIA's GPUs: what a container is edited like to get some of them, and
// the specification of all of them for other container engines. Both are made of the same parts, so a
// container of Drover's gets what one of podman's does. Pure.

#include <string>
#include <vector>

#include "base/result.h"
#include "cdi/specification.h"
#include "driver/guard.h"
#include "driver/host_files.h"
#include "gpu/device.h"
#include "gpu/device_node.h"

namespace drover::driver {

inline constexpr const char* kCdiKind = "nvidia.com/gpu";
/// `folder` is where the nodes are on the host; "" when it does not matter, since they tell their numbers.
cdi::Edits edits_of_nodes(const std::vector<gpu::DeviceNode>& nodes, const std::string& folder = "");

/// Mounts of the driver's files, and the hooks that make them be found. `program` is Drover's, absolute.
cdi::Edits edits_of_files(const HostFiles& files, const std::string& program);

/// Of the mounts of files that are behind a guard (guard.h), those of the guard, and of what it needs.
std::vector<cdi::Mount> mounts_of_guard(const cdi::Edits& files, const Guard& guard);
/// Refuses a container in which any of these mounts is not what is at its place.
cdi::Hook guard_hook(const std::vector<cdi::Mount>& mounts, const std::string& program);

struct CdiInput {
  gpu::Inventory inventory;
  std::string device_folder = "/dev";          ///< where the nodes are on the host
  std::vector<gpu::DeviceNode> gpu_nodes;      ///< of inventory.devices; those without a node are left out
  std::vector<gpu::DeviceNode> control_nodes;  ///< go with every GPU
  HostFiles files;
  std::string program;
};

/// Every GPU that is healthy is there by its index and by its UUID, and all of them as "all". kNotFound when
/// there is none.
Result<cdi::Specification> cdi_specification(const CdiInput& input);

/// The node by which a device of another vendor would bring a GPU along that Drover has not given; "" for
/// none. `nodes` are those of this machine's GPUs. Only numbers count: mounting a node gives no right to open
/// it.
std::string gpu_node_in(const cdi::Edits& edits, const std::vector<gpu::DeviceNode>& nodes);

}  // namespace drover::driver

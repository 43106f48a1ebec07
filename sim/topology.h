#pragma once

// How the GPUs of a profile are wired. Pure.

#include <cstddef>
#include <vector>

#include "gpu/nvml_abi.h"
#include "sim/profile.h"

namespace drover::sim {

/// The nearest thing that two GPUs share on the way to the CPU.
nvmlGpuTopologyLevel_t common_ancestor(const Gpu& a, const Gpu& b);

/// Where one NVLink of a GPU ends.
struct LinkEnd {
  nvmlIntNvLinkDeviceType_t type = NVML_NVLINK_DEVICE_TYPE_UNKNOWN;
  PciAddress pci;
  std::uint32_t pci_device = 0;  ///< device << 16 | vendor
  unsigned int remote_link = 0;
};

/// The active NVLinks of the GPU at `position`, by link number.
std::vector<LinkEnd> link_ends(const Profile& profile, std::size_t position);

/// Whether two GPUs reach each other's memory over NVLink.
bool joined_by_nvlink(const Profile& profile, std::size_t a, std::size_t b);

/// The CPUs of the GPU's NUMA node.
const std::vector<int>& cpus_of(const Profile& profile, const Gpu& gpu);

}  // namespace drover::sim

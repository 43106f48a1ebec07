#pragma once

// Which driver serves which CUDA, and which GPUs a CUDA can compute on: NVIDIA's published minimums, as data.
// Pure.

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/version.h"
#include "gpu/device.h"

namespace drover::driver {

/// One release of the CUDA toolkit.
struct CudaRelease {
  std::string_view cuda;          ///< "12.2"
  std::string_view driver;        ///< the first driver for Linux that serves it
  gpu::ComputeCapability oldest;  ///< its compiler and libraries know no GPU below this one
};

/// Oldest first.
std::span<const CudaRelease> cuda_releases();

/// The newest CUDA that a driver of this version serves by itself; "" for one that is older than the table,
/// or not known.
std::string newest_cuda(const std::string& driver);

/// Whether a driver runs programs of this CUDA: it serves it, or one of the same major number from CUDA 11 on
/// and it is new enough for minor version compatibility. `serves` is the newest CUDA that it serves; "" asks
/// the table.
bool runs_cuda(const std::string& driver, const std::string& serves, const Version& cuda);

/// The oldest driver that runs_cuda() this; "" when the table does not know one.
std::string oldest_driver_for(const Version& cuda);

/// The oldest compute capability that this CUDA knows; of one between two releases, what the older one says.
gpu::ComputeCapability oldest_capability(const Version& cuda);

}  // namespace drover::driver

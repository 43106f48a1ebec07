#pragma once

// The driver's own limits to what the processes of a control group hold of a GPU, since driver 615. They hold
// in the kernel: nothing in the process takes part. Asks NVML, which needs root to set one; blocks while the
// driver answers. Thread safe.
// Source: NVML API reference; NVIDIA's documentation of memory partitioning of release 615.

#include <cstdint>
#include <string>

#include "base/result.h"
#include "gpu/nvml.h"

namespace drover::gpu {

inline constexpr std::uint64_t kNoMemoryLimit = NVML_DEVICE_MEMORY_LIMIT_MAX;

/// Bytes.
struct MemoryLimit {
  std::uint64_t soft = 0;  ///< what the group is promised
  std::uint64_t hard = kNoMemoryLimit;
  std::uint64_t used = 0;  ///< by all of the group now, contexts included; managed memory is not

  bool is_none() const { return soft == 0 && hard == kNoMemoryLimit; }
  bool operator==(const MemoryLimit&) const = default;
};

/// Whether the library has the calls: kUnsupported, and why, when it has not.
Status knows_memory_limits(const Nvml& nvml);

/// `group` is the absolute path of a cgroup v2 directory; `gpu` a UUID. kUnsupported where the driver or the
/// GPU does not have limits, as in MIG mode.
Result<MemoryLimit> memory_limit(const Nvml& nvml, const std::string& gpu, const std::string& group);
/// kPermissionDenied for all but root.
Status set_memory_limit(const Nvml& nvml, const std::string& gpu, const std::string& group,
                        std::uint64_t soft, std::uint64_t hard);

}  // namespace drover::gpu

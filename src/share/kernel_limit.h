#pragma once

// The hard tier of memory shares: the driver itself holds the processes of a control group to their share,
// since driver 615 and on control groups of version 2. The limit stands on the container's own group, the
// leaf: one of a group around it holds too, but programs would be told of the whole card. Nothing is promised
// (the soft limit is 0), so a group that vanishes with its limit leaves nothing behind on those around it.
//
// Asks NVML as root; blocks while the driver answers. Thread safe.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "gpu/nvml.h"

namespace drover::share {

/// Limits are whole multiples of this, which every driver can keep exactly: a share is rounded down to it.
inline constexpr std::uint64_t kLimitStep = 2ULL << 20;

/// What a control group may hold of one GPU.
struct KernelLimit {
  std::string gpu;  ///< UUID
  std::uint64_t bytes = 0;

  bool operator==(const KernelLimit&) const = default;
};

/// Whether the driver limits memory on this GPU. `group` is the directory of any group of version 2 but the
/// root's, "" where there is none. kUnsupported, or kUnavailable when it should and does not answer, with the
/// reason in words.
Status can_limit_memory(const gpu::Nvml& nvml, const std::string& gpu, const std::string& group);

/// Sets the limits of an empty group before anything runs in it, and reads each back. When one fails or is
/// not what was set, the others are taken away again: kInvalid for a share below kLimitStep, else as above.
Status limit_memory(const gpu::Nvml& nvml, const std::string& group, const std::vector<KernelLimit>& limits);

/// Sets other limits of a group in which something runs, and reads each back. Tries every GPU, and tells of
/// the first that failed; what could not be set stays as it was. Idempotent.
Status change_memory_limits(const gpu::Nvml& nvml, const std::string& group,
                            const std::vector<KernelLimit>& limits);

/// Takes the limits of these GPUs away, before the group is removed. Idempotent; a group that is gone is
/// fine. Tries every GPU, and tells of the first that failed.
Status unlimit_memory(const gpu::Nvml& nvml, const std::string& group, const std::vector<std::string>& gpus);

}  // namespace drover::share

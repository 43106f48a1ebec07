#pragma once

// The driver's own limits of memory, one for a GPU and a control group: NVML's side of what the live file
// says of them (sim/live.h). A limit holds the processes of the group and of the groups inside of it, unless
// one of those has a limit of its own. Thread safe.

#include <cstdint>
#include <filesystem>
#include <optional>

#include "base/result.h"
#include "sim/groups.h"
#include "sim/live.h"

namespace drover::sim {

/// Bytes.
struct MemoryLimit {
  std::uint64_t soft = 0;
  std::uint64_t hard = kNoMemoryLimit;
  std::uint64_t used = 0;

  bool operator==(const MemoryLimit&) const = default;
};

class LimitFile {
 public:
  explicit LimitFile(std::filesystem::path live) : file_(std::move(live)) {}

  /// `gpu` is a position in the profile. A group without limits has none, and may still use memory.
  MemoryLimit of(std::size_t gpu, Group group) const;
  /// The limit as which the memory of the GPU appears to a process: only that of the very group that it is
  /// in.
  std::optional<MemoryLimit> view(std::size_t gpu, const Groups& own) const;
  /// No soft and no hard limit takes it away. kExhausted when too many groups have one, kPermissionDenied
  /// when the file may not be written, kTimeout when somebody does not let go of it.
  Status set(std::size_t gpu, Group group, std::uint64_t soft, std::uint64_t hard) const;

 private:
  std::uint64_t used(int fd, std::size_t gpu, Group group) const;

  const std::filesystem::path file_;
};

}  // namespace drover::sim

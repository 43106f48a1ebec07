#pragma once

// The driver's own limits of GPU memory on this machine (share/kernel_limit.h), for containers that are about
// to start, that run, and that have ended. A driver that does not answer holds nobody up for longer than some
// seconds. Thread safe.

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "container/containerizer.h"
#include "hardware.h"
#include "share/kernel_limit.h"

namespace drover {

class MemoryLimits {
 public:
  explicit MemoryLimits(std::shared_ptr<const Hardware> hardware);

  /// What sets these limits on a container's control group. kUnsupported and kUnavailable, as
  /// share::can_limit_memory().
  Result<container::MemoryLimiter> limiter(const std::vector<share::KernelLimit>& limits) const;
  /// share::change_memory_limits().
  Status change(const std::string& group, const std::vector<share::KernelLimit>& limits) const;
  /// Takes those of these GPUs away again. What fails is logged: the limit goes with the group.
  void unlimit(const std::string& group, const std::vector<std::string>& gpus) const;

 private:
  std::shared_ptr<const Hardware> hardware_;
  std::string own_group_;  ///< the directory of ours; "" where groups are not of version 2 alone
};

/// The directory of this process's own group, as above.
std::string own_unified_group();

}  // namespace drover

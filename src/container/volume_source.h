#pragma once

// What is no volume although the task's user can reach it: file systems by which the kernel itself is seen
// and changed, such as procfs, sysfs and cgroups. Through them root in a container would reach every device,
// and the machine. Thread safe.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "container/volume_plan.h"

namespace drover::container {

/// By the type of the mount, as the kernel calls it: "proc". Not those that only hold what somebody put
/// there, such as tmpfs, also where it lies in /dev, and hugetlbfs.
bool is_kernel_file_system(std::string_view type);

struct KernelMount {
  std::string type;
  std::string place;  ///< where it is mounted

  bool operator==(const KernelMount&) const = default;
};

/// Reads /proc/<pid>/mountinfo (proc(5)): the mounts of such file systems at `folder` and in it, in their
/// order.
std::vector<KernelMount> kernel_mounts_in(std::string_view mountinfo, const std::string& folder);
/// The same of the calling thread's own mount namespace.
Result<std::vector<KernelMount>> kernel_mounts_in(const std::string& folder);

/// kPermissionDenied when the volume that was opened as `fd` lies in such a file system, or holds one: its
/// mounts go with it. By the mount that the descriptor is of, so no link or bind mount makes a difference.
Status check_source(const VolumePlan& volume, int fd);

}  // namespace drover::container

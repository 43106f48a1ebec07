#pragma once

// What AppArmor and SELinux add to a container where the kernel has them: the second wall behind the filter
// of system calls. Thread safe.

#include <string>

#include "base/files.h"
#include "base/result.h"

namespace drover::container {

/// The profile in packaging/apparmor, once it is loaded.
inline constexpr const char* kAppArmorProfile = "drover-default";

struct SecurityModules {
  enum class AppArmor { kAbsent, kProfileMissing, kReady };
  AppArmor apparmor = AppArmor::kAbsent;
  bool selinux_enforcing = false;

  bool operator==(const SecurityModules&) const = default;
};

/// Looks at the kernel's files below `sys`. Blocks for a moment only.
SecurityModules find_security_modules(const std::string& sys = "/sys");

struct SelinuxLabels {
  std::string process;
  std::string files;  ///< that the process may write
};

/// Those of the container policy (container-selinux), with a pair of categories of this task: what carries
/// another pair cannot be reached, whoever the user is. The same for the same task.
SelinuxLabels selinux_labels(const std::string& task_id);

/// Gives a folder the label that new files in it inherit.
Status label_folder(const Directory& folder, const std::string& label);

}  // namespace drover::container

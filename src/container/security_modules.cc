#include "container/security_modules.h"

#include <fmt/format.h>
#include <sys/xattr.h>

#include <cerrno>
#include <cstdint>

namespace drover::container {
namespace {

bool first_letter_is(const std::string& path, char wanted) {
  const auto text = read_file(path);
  return text && !text->empty() && text->front() == wanted;
}

/// Lines "name (mode)".
bool has_profile(const std::string& list) {
  const auto line = fmt::format("{} (enforce)\n", kAppArmorProfile);
  return list.starts_with(line) || list.find("\n" + line) != std::string::npos;
}

}  // namespace

SecurityModules find_security_modules(const std::string& sys) {
  using AppArmor = SecurityModules::AppArmor;
  SecurityModules found;
  if (first_letter_is(sys + "/module/apparmor/parameters/enabled", 'Y')) {
    const auto profiles = read_file(sys + "/kernel/security/apparmor/profiles");
    found.apparmor = profiles && has_profile(*profiles) ? AppArmor::kReady : AppArmor::kProfileMissing;
  }
  found.selinux_enforcing = first_letter_is(sys + "/fs/selinux/enforce", '1');
  return found;
}

SelinuxLabels selinux_labels(const std::string& task_id) {
  constexpr std::uint64_t kCategories = 1024;
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a: the same in every build
  for (const unsigned char c : task_id) hash = (hash ^ c) * 0x100000001b3;
  auto low = hash % kCategories;
  auto high = hash / kCategories % (kCategories - 1);
  if (high >= low) ++high;  // two that differ
  if (high < low) std::swap(low, high);
  const auto categories = fmt::format("s0:c{},c{}", low, high);
  return {"system_u:system_r:container_t:" + categories, "system_u:object_r:container_file_t:" + categories};
}

Status label_folder(const Directory& folder, const std::string& label) {
  if (::fsetxattr(folder.fd(), "security.selinux", label.c_str(), label.size() + 1, 0) == 0) return {};
  return fail_errno(fmt::format("Failed to give '{}' the SELinux label '{}'", folder.path(), label), errno);
}

}  // namespace drover::container

#include "base/spawn.h"

#include <fcntl.h>
#include <fmt/format.h>

namespace drover {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (const auto& string : strings) result.push_back(const_cast<char*>(string.c_str()));
  result.push_back(nullptr);
  return result;
}

}  // namespace

void ChildDescriptors::give(int ours, int theirs) {
  ::posix_spawn_file_actions_adddup2(&actions_, ours, theirs);
}

void ChildDescriptors::open(const std::string& path, int theirs) {
  ::posix_spawn_file_actions_addopen(&actions_, theirs, path.c_str(), O_RDWR, 0);
}

void ChildDescriptors::close_from(int first) {
  ::posix_spawn_file_actions_addclosefrom_np(&actions_, first);
}

Result<pid_t> spawn(const Child& child, const ChildDescriptors& descriptors) {
  std::vector<std::string> assignments;
  for (const auto& [name, value] : child.environment) assignments.push_back(name + "=" + value);
  sigset_t all;
  ::sigfillset(&all);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setsigmask(&attributes, &child.blocked);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  const int session = child.own_session ? POSIX_SPAWN_SETSID : 0;
  ::posix_spawnattr_setflags(&attributes,
                             static_cast<short>(session | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));
  pid_t pid = 0;
  const int error = ::posix_spawn(&pid, child.program.c_str(), &descriptors.actions(), &attributes,
                                  pointers(child.arguments).data(), pointers(assignments).data());
  ::posix_spawnattr_destroy(&attributes);
  if (error != 0) return fail_errno(fmt::format("Failed to start '{}'", child.program), error);
  return pid;
}

}  // namespace drover

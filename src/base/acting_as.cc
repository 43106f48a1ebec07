#include "base/acting_as.h"

#include <fmt/format.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace drover {
namespace {

#ifdef SYS_setgroups32  // 32-bit machines have an older call with 16-bit ids beside it
constexpr long kSetGroups = SYS_setgroups32;
constexpr long kGetGroups = SYS_getgroups32;
#else
constexpr long kSetGroups = SYS_setgroups;
constexpr long kGetGroups = SYS_getgroups;
#endif

// The C library's setgroups() changes all threads; the system call changes this one only.
bool set_groups(const std::vector<gid_t>& groups) {
  return ::syscall(kSetGroups, groups.size(), groups.data()) == 0;
}

bool set_ids(uid_t uid, gid_t gid) {
  ::setfsgid(gid);
  ::setfsuid(uid);
  // Neither call reports a failure; asking for an impossible id changes nothing and returns the present one.
  return ::setfsgid(static_cast<gid_t>(-1)) == static_cast<int>(gid) &&
         ::setfsuid(static_cast<uid_t>(-1)) == static_cast<int>(uid);
}

}  // namespace

Result<ActingAs> ActingAs::start(const User& user) {
  if (user.uid == ::geteuid()) return ActingAs(std::nullopt);
  const auto refusal = [&](int error) {
    return fail_errno(fmt::format("Failed to act as user '{}'", user.name), error);
  };
  const auto count = ::syscall(kGetGroups, 0, nullptr);
  if (count < 0) return refusal(errno);
  std::vector<gid_t> saved(static_cast<std::size_t>(count));
  if (::syscall(kGetGroups, count, saved.data()) < 0) return refusal(errno);
  if (!set_groups(user.groups)) return refusal(errno);
  ActingAs acting(std::move(saved));
  if (!set_ids(user.uid, user.gid)) return refusal(EPERM);
  return acting;
}

ActingAs::~ActingAs() {
  if (groups_ && (!set_ids(::geteuid(), ::getegid()) || !set_groups(*groups_))) std::abort();
}

}  // namespace drover

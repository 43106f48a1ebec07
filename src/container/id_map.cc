#include "container/id_map.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/files.h"
#include "base/spawn.h"

namespace drover::container {
namespace {

Status write_map(pid_t process, const char* name, const IdMap& map) {
  const auto path = fmt::format("/proc/{}/{}", process, name);
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.valid()) return fail_errno(fmt::format("Failed to open '{}'", path), errno);
  return write_all(file.get(), fmt::format("0 {} {}", map.first, IdMap::kCount), path);
}

/// A process in a new user namespace that does nothing until the pipe ends. As fork(2), which has no flags.
Result<pid_t> start_holder(Pipe& pipe) {
  const auto process = static_cast<pid_t>(::syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0));
  if (process < 0) {
    auto failure = errno_error("Failed to create a user namespace", errno);
    failure.kind = ErrorKind::kUnsupported;
    failure.hint = "see the kernel's settings user.max_user_namespaces and kernel.unprivileged_userns_clone";
    return Failure(std::move(failure));
  }
  if (process == 0) {
    ::close(pipe.write.get());
    char nothing = 0;
    while (::read(pipe.read.get(), &nothing, 1) < 0 && errno == EINTR) {
    }
    ::_exit(EXIT_SUCCESS);
  }
  return process;
}

}  // namespace

bool IdMap::holds(const User& user) const {
  return user.uid < kCount && user.gid < kCount &&
         std::ranges::all_of(user.groups, [](gid_t group) { return group < kCount; });
}

Result<UserNamespace> UserNamespace::make(const IdMap& map) {
  DROVER_TRY(auto pipe, make_pipe());
  DROVER_TRY(const auto holder, start_holder(pipe));
  auto made = [&]() -> Result<UserNamespace> {
    for (const char* name : {"uid_map", "gid_map"}) DROVER_CHECK_OK(write_map(holder, name, map));
    UniqueFd fd(::open(fmt::format("/proc/{}/ns/user", holder).c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd.valid()) return fail_errno("Failed to open a user namespace", errno);
    return UserNamespace(std::move(fd));
  }();
  pipe.write.reset();
  while (::waitpid(holder, nullptr, 0) < 0 && errno == EINTR) {
  }
  return made;
}

}  // namespace drover::container

#include "base/spawn.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>

#include "base/pidfd.h"

namespace drover {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (const auto& string : strings) result.push_back(const_cast<char*>(string.c_str()));
  result.push_back(nullptr);
  return result;
}

// For what a container's runtime makes, which is for the container's user. A thread's umask is that of all
// threads, until it has left them.
class UsualUmask {
 public:
  UsualUmask() : alone_(::unshare(CLONE_FS) == 0), before_(alone_ ? ::umask(022) : 0) {}
  ~UsualUmask() {
    if (alone_) ::umask(before_);
  }
  UsualUmask(const UsualUmask&) = delete;
  UsualUmask& operator=(const UsualUmask&) = delete;

 private:
  bool alone_;
  mode_t before_;
};

Result<Spawned> watched(pid_t pid, const std::string& program) {
  Spawned child{pid, open_process(pid)};
  if (child.process.valid()) return child;
  const int error = errno;
  ::kill(pid, SIGKILL);
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) continue;
  return fail_errno(fmt::format("Failed to watch '{}'", program), error);
}

}  // namespace

Result<UniqueFd> moved_up(int fd, int lowest) {
  UniqueFd moved(::fcntl(fd, F_DUPFD_CLOEXEC, lowest));
  if (!moved.valid()) return fail_errno("Failed to duplicate a descriptor", errno);
  return moved;
}

Result<Pipe> make_pipe(int lowest) {
  std::array<int, 2> fds{};
  if (::pipe2(fds.data(), O_CLOEXEC) != 0) return fail_errno("Failed to create a pipe", errno);
  Pipe pipe{UniqueFd(fds[0]), UniqueFd(fds[1])};
  for (auto* end : {&pipe.read, &pipe.write})
    if (end->get() < lowest) {
      DROVER_TRY(*end, moved_up(end->get(), lowest));
    }
  return pipe;
}

void ChildDescriptors::give(int ours, int theirs) {
  note(::posix_spawn_file_actions_adddup2(&actions_, ours, theirs));
}

void ChildDescriptors::open(const std::string& path, int theirs) {
  note(::posix_spawn_file_actions_addopen(&actions_, theirs, path.c_str(), O_RDWR, 0));
}

void ChildDescriptors::close_from(int first) {
  note(::posix_spawn_file_actions_addclosefrom_np(&actions_, first));
}

void ChildDescriptors::close_others(int kept) {
  if (kept >= 0) give(kept, STDERR_FILENO + 1);
  close_from(STDERR_FILENO + (kept >= 0 ? 2 : 1));
}

Result<StandardPipes> give_standard_pipes(ChildDescriptors& descriptors, int kept) {
  StandardPipes pipes;
  for (auto* pipe : {&pipes.input, &pipes.output, &pipes.errors}) {
    DROVER_TRY(*pipe, make_pipe());
  }
  descriptors.give(pipes.input.read.get(), STDIN_FILENO);
  descriptors.give(pipes.output.write.get(), STDOUT_FILENO);
  descriptors.give(pipes.errors.write.get(), STDERR_FILENO);
  descriptors.close_others(kept);
  return pipes;
}

Result<Spawned> spawn(const Child& child, const ChildDescriptors& descriptors) {
  if (descriptors.error() != 0)
    return fail_errno(fmt::format("Failed to start '{}'", child.program), descriptors.error());
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
  const UsualUmask umask;
  const int error = ::posix_spawn(&pid, child.program.c_str(), &descriptors.actions(), &attributes,
                                  pointers(child.arguments).data(), pointers(assignments).data());
  ::posix_spawnattr_destroy(&attributes);
  if (error != 0) return fail_errno(fmt::format("Failed to start '{}'", child.program), error);
  return watched(pid, child.program);
}

}  // namespace drover

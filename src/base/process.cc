#include "base/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>

#include "base/fd.h"
#include "base/files.h"
#include "base/pidfd.h"
#include "base/spawn.h"

namespace drover {
namespace {

/// Moves what is ready; returns false when the stream has ended.
bool drain(int fd, std::string& into, std::uint64_t limit) {
  std::array<char, 16384> buffer;
  const auto count = ::read(fd, buffer.data(), buffer.size());
  if (count < 0) return errno == EINTR || errno == EAGAIN;
  const auto room = limit > into.size() ? limit - into.size() : 0;
  into.append(buffer.data(), std::min<std::uint64_t>(room, static_cast<std::uint64_t>(count)));
  return count > 0;
}

using Deadline = std::chrono::steady_clock::time_point;

int milliseconds_until(Deadline deadline) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp<long>(left.count(), 0, 1 << 30));
}

/// Feeds standard input and collects both outputs until they end; false when the deadline came first.
bool exchange(StandardPipes& pipes, const Command& command, Deadline deadline, Completed& completed) {
  auto& [input, output, errors] = pipes;
  std::string_view unsent = command.input;
  ::fcntl(input.write.get(), F_SETFL, O_NONBLOCK);
  while (output.read.valid() || errors.read.valid()) {
    if (unsent.empty()) input.write.reset();
    std::array<pollfd, 3> polls = {pollfd{output.read.get(), POLLIN, 0}, pollfd{errors.read.get(), POLLIN, 0},
                                   pollfd{input.write.get(), POLLOUT, 0}};
    const int left = milliseconds_until(deadline);
    if (left == 0) return false;
    if (::poll(polls.data(), polls.size(), left) < 0) continue;
    if (polls[0].revents != 0 && !drain(output.read.get(), completed.output, command.output_limit))
      output.read.reset();
    if (polls[1].revents != 0 && !drain(errors.read.get(), completed.errors, command.output_limit))
      errors.read.reset();
    if (polls[2].revents != 0) {
      const auto count = ::write(input.write.get(), unsent.data(), unsent.size());
      if (count >= 0)
        unsent.remove_prefix(static_cast<std::size_t>(count));
      else if (errno != EAGAIN && errno != EINTR)
        unsent = {};
    }
  }
  return true;
}

/// False when the deadline came first. A program may have closed its outputs and go on.
bool ends(pid_t pid, Deadline deadline) {
  const auto process = open_process(pid);
  if (!process.valid()) return true;  // then it is waited for however long it takes
  pollfd ended{process.get(), POLLIN, 0};
  int found = 0;
  do found = ::poll(&ended, 1, milliseconds_until(deadline));
  while (found < 0 && errno == EINTR);
  return found > 0;
}

}  // namespace

Result<Completed> run_command(const Command& command) {
  if (command.arguments.empty()) return fail(ErrorKind::kInternal, "run_command was given no program");
  DROVER_TRY(const auto program, find_program(command.arguments[0]));
  ChildDescriptors descriptors;
  DROVER_TRY(auto pipes, give_standard_pipes(descriptors));
  DROVER_TRY(const auto child, spawn({.program = program,
                                      .arguments = command.arguments,
                                      .environment = command.environment,
                                      .own_session = false},
                                     descriptors));
  pipes.input.read.reset();
  pipes.output.write.reset();
  pipes.errors.write.reset();
  Completed completed;
  const auto deadline = std::chrono::steady_clock::now() + command.timeout;
  const bool in_time = exchange(pipes, command, deadline, completed) && ends(child.pid, deadline);
  if (!in_time) ::kill(child.pid, SIGKILL);
  int status = 0;
  while (::waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!in_time)
    return fail(ErrorKind::kTimeout,
                fmt::format("'{}' did not end within {} ms", command.arguments[0], command.timeout.count()));
  completed.exit_status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return completed;
}

std::map<std::string, std::string> minimal_environment() {
  std::map<std::string, std::string> environment = {{"LANG", "C.UTF-8"}};
  for (const char* name : {"PATH", "HOME"})
    if (const char* value = std::getenv(name)) environment[name] = value;
  return environment;
}

void raise_limits() {
  const rlimit unlimited{RLIM_INFINITY, RLIM_INFINITY};
  ::setrlimit(RLIMIT_MEMLOCK, &unlimited);
  constexpr rlim_t kOpenFiles = 65536;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= kOpenFiles) return;
  limit.rlim_cur = std::min(limit.rlim_max, kOpenFiles);
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

Result<std::string> find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    if (::access(name.c_str(), X_OK) == 0) return name;
    return fail_errno(fmt::format("Failed to find program '{}'", name), errno);
  }
  const char* path = std::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "/usr/sbin:/usr/bin:/sbin:/bin";
  while (!rest.empty()) {
    const auto end = rest.find(':');
    const auto candidate = fmt::format("{}/{}", rest.substr(0, end), name);
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
    rest = end == std::string_view::npos ? "" : rest.substr(end + 1);
  }
  return fail(ErrorKind::kNotFound, fmt::format("Failed to find program '{}' in PATH", name),
              fmt::format("install '{}'", name));
}

}  // namespace drover

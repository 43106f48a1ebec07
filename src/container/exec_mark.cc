#include "container/exec_mark.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "base/fd.h"
#include "base/files.h"
#include "base/pidfd.h"

namespace drover::container {
namespace {

constexpr auto kKillPatience = std::chrono::seconds(5);
constexpr auto kEndPoll = std::chrono::milliseconds(5);
constexpr const char* kGroupPrefix = "exec-";

void end_group(const Cgroup& group) {
  (void)group.kill_all(kKillPatience);
  group.remove();
}

/// Whether a process was started with this assignment in its environment.
bool has_variable(pid_t pid, const std::string& assignment, bool prefix) {
  const auto text = read_file(fmt::format("/proc/{}/environ", pid));
  if (!text) return false;
  const auto whole = std::string(1, '\0') + *text + std::string(1, '\0');
  return whole.find(std::string(1, '\0') + assignment + (prefix ? "" : std::string(1, '\0'))) !=
         std::string::npos;
}

bool is_stopped(pid_t pid) {
  const auto status = read_file(fmt::format("/proc/{}/status", pid));
  return status && status->find("\nState:\tT") != std::string::npos;
}

/// SIGKILL until no process of the group carries the marker. A child that is just being forked is met at the
/// next look.
void kill_marked(const Cgroup& cgroup, const std::string& assignment, bool prefix) {
  const auto deadline = std::chrono::steady_clock::now() + kKillPatience;
  while (std::chrono::steady_clock::now() < deadline) {
    bool any = false;
    for (const auto pid : cgroup.processes()) {
      const auto process = open_process(pid);
      if (!process.valid() || !has_variable(pid, assignment, prefix)) continue;
      any = true;
      send_signal(process, SIGKILL);
    }
    if (!any) return;
    std::this_thread::sleep_for(kEndPoll);
  }
}

}  // namespace

std::string next_exec_id() {
  static std::atomic<unsigned> counter{0};
  return fmt::format("{}-{}", ::getpid(), ++counter);
}

std::string exec_group(const std::string& id) {
  return kGroupPrefix + id;
}

bool enclose_exec(const Cgroup& cgroup, const std::string& id) {
  for (const auto pid : cgroup.processes()) {
    const auto process = open_process(pid);
    if (!process.valid() || !is_stopped(pid) ||
        !has_variable(pid, fmt::format("{}={}", kExecMarker, id), false))
      continue;
    const auto group = cgroup.child(exec_group(id));
    // Where it cannot be, the variable has to do.
    if (group.create()) group.take(pid);
    send_signal(process, SIGCONT);
    return true;
  }
  return false;
}

void kill_exec(const Cgroup& cgroup, const std::string& id) {
  end_group(cgroup.child(exec_group(id)));
  kill_marked(cgroup, fmt::format("{}={}", kExecMarker, id), false);
}

void end_forgotten_execs(const Cgroup& cgroup) {
  for (const auto& name : cgroup.children())
    if (name.starts_with(kGroupPrefix)) end_group(cgroup.child(name));
  kill_marked(cgroup, fmt::format("{}=", kExecMarker), true);
}

}  // namespace drover::container

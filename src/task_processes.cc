#include "task_processes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <map>

#include "base/files.h"
#include "metrics/processes.h"

namespace drover {
namespace {

constexpr std::string_view kGroupOfTasks = "drover";
constexpr std::string_view kGroupOfShims = "shims";
constexpr std::size_t kDigitsOfContainer = 64;

/// "docker-<id>.scope": engines name the group of a container by its id, of 64 digits. Other groups that its
/// processes are in may be those of many.
bool names_container(std::string_view group) {
  std::size_t digits = 0;
  for (const char character : group) {
    digits = std::isxdigit(static_cast<unsigned char>(character)) != 0 ? digits + 1 : 0;
    if (digits == kDigitsOfContainer) return true;
  }
  return false;
}

using TasksByGroup = std::map<std::string, std::string, std::less<>>;

/// Containers of OCI runtimes are in a group by the name of their task, and those of a Docker Engine in one
/// by their own, where their first process is.
TasksByGroup tasks_by_group(const std::vector<engine::TaskProcesses>& tasks) {
  TasksByGroup by_group;
  for (const auto& task : tasks) {
    by_group[task.id] = task.id;
    if (task.first <= 0) continue;
    const auto cgroups = read_file(fmt::format("/proc/{}/cgroup", task.first)).value_or("");
    std::string_view innermost;  // the engine may be in a container itself
    for (const auto group : metrics::cgroup_names(cgroups))
      if (names_container(group)) innermost = group;
    if (!innermost.empty()) by_group.emplace(innermost, task.id);
  }
  return by_group;
}

}  // namespace

gpu::TaskOf task_of(const std::vector<engine::TaskProcesses>& tasks) {
  return [by_group = tasks_by_group(tasks)](std::string_view cgroups) -> std::string {
    const auto names = metrics::cgroup_names(cgroups);
    for (const auto name : names)
      if (const auto found = by_group.find(name); found != by_group.end()) return found->second;
    const auto ours = std::ranges::find(names, kGroupOfTasks);
    if (ours == names.end() || ours + 1 == names.end() || ours[1] == kGroupOfShims) return "";
    return std::string(ours[1]);
  };
}

}  // namespace drover

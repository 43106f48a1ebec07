#include "task_processes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <functional>
#include <map>

#include "base/files.h"
#include "metrics/processes.h"

namespace drover {
namespace {

constexpr std::string_view kGroupOfTasks = "drover";
constexpr std::string_view kGroupOfShims = "shims";

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
      if (!metrics::container_of_group(group).empty()) innermost = group;
    if (!innermost.empty()) by_group.emplace(innermost, task.id);
  }
  return by_group;
}

std::string in_words(const std::vector<pid_t>& processes) {
  std::vector<metrics::ProcessState> hanging, others;
  for (const auto pid : processes)
    if (auto state = metrics::process_state("/proc", pid))
      (state->in_kernel ? hanging : others).push_back(std::move(*state));
  const auto& told = hanging.empty() ? others : hanging;
  if (told.empty()) return "";
  auto words = fmt::format("process {} ({}) {}", told.front().pid, told.front().name,
                           hanging.empty() ? "still runs" : "hangs in the kernel");
  if (const auto more = hanging.size() + others.size() - 1; more > 0)
    words += fmt::format(", and {} more", more);
  return words;
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

std::map<std::string, std::vector<pid_t>> processes_of(const std::vector<engine::TaskProcesses>& tasks) {
  const auto task = task_of(tasks);
  std::map<std::string, std::vector<pid_t>> processes;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const auto name = entry.path().filename().string();
    pid_t pid = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), pid).ptr != name.data() + name.size())
      continue;
    if (auto id = task(read_file(entry.path().string() + "/cgroup").value_or("")); !id.empty())
      processes[std::move(id)].push_back(pid);
  }
  return processes;
}

std::map<std::string, std::string> what_still_runs(const std::vector<engine::TaskProcesses>& tasks) {
  std::map<std::string, std::string> result;
  const auto processes = processes_of(tasks);
  for (const auto& task : tasks)
    if (const auto found = processes.find(task.id); found != processes.end())
      if (auto words = in_words(found->second); !words.empty()) result.emplace(task.id, std::move(words));
  return result;
}

}  // namespace drover

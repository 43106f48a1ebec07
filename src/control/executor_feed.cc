#include "control/executor_feed.h"

#include <algorithm>

#include "control/status_updates.h"

namespace drover::control {
namespace {

/// The tasks of the executor that have not ended, by launch.
std::vector<const FrameworkTask*> tasks_within(const State& state, const ExecutorRecord& executor) {
  std::vector<const FrameworkTask*> tasks;
  for (const auto& [key, task] : state.framework_tasks)
    if (task.within && task.id == executor.id && !is_terminal(task.told)) tasks.push_back(&task);
  std::ranges::sort(tasks, {},
                    [](const auto* task) { return std::pair(task->within->launch, task->task_id); });
  return tasks;
}

}  // namespace

bool ExecutorFeed::is_new(const FrameworkTask& task) {
  const bool fresh = launches_sent_.emplace(task.task_id, task.within->launch).second;
  const bool has_it = !task.told.empty() || (first_ && received_.contains(task.task_id));
  return fresh && !has_it;
}

std::vector<ExecutorOrder> ExecutorFeed::next(const State& state, const ExecutorRecord& executor) {
  using Kind = ExecutorOrder::Kind;
  std::vector<ExecutorOrder> orders;
  std::vector<ExecutorOrder> kills;
  int group = -1;
  for (const auto* task : tasks_within(state, executor)) {
    const auto& part = *task->within;
    if (is_new(*task)) {
      if (part.in_group && group == part.launch)
        orders.back().tasks.push_back(task);
      else
        orders.push_back({part.in_group ? Kind::kLaunchGroup : Kind::kLaunch, {task}});
      group = part.in_group ? part.launch : -1;
    }
    if (part.kill && kills_sent_.emplace(task->task_id, part.launch).second)
      kills.push_back({Kind::kKill, {task}});
  }
  first_ = false;
  orders.insert(orders.end(), kills.begin(), kills.end());
  return orders;
}

}  // namespace drover::control

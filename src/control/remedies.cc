#include "control/remedies.h"

#include <algorithm>

#include "control/planning.h"
#include "control/submission.h"
#include "placement/weaker.h"

namespace drover::control {
namespace {

constexpr std::size_t kMostWaiting = 200;
constexpr std::size_t kMostTold = 3;

/// The tasks as they would be if they asked for what `gang` says, under names that nobody has.
std::vector<workload::Task> asking_for(const placement::Gang& gang, std::vector<workload::Task> tasks) {
  tasks.resize(gang.members.size());
  for (std::size_t rank = 0; rank < tasks.size(); ++rank) {
    auto& task = tasks[rank];
    const auto group = std::move(task.resources.group);  // placement has it under its owner's name
    task.resources = gang.members[rank];
    task.resources.group = group;
    task.id += "?";
    if (!task.gang) continue;
    task.gang->id += "?";
    task.gang->size = static_cast<int>(tasks.size());
    task.id = member_id(task.gang->id, static_cast<int>(rank));
  }
  return tasks;
}

/// The state without those of the tasks that wait.
void withdraw(Draft& draft, const std::vector<workload::Task>& tasks) {
  for (const auto& task : tasks)
    if (const auto* record = draft.find(task.id); record != nullptr && record->state == TaskState::kQueued)
      draft.change(task.id).state = TaskState::kKilled;
}

bool would_start(const State& state, const std::vector<workload::Task>& instead_of,
                 const std::vector<workload::Task>& tasks, TimePoint now) {
  Draft draft(state, now);
  withdraw(draft, instead_of);
  if (!submit(draft, tasks)) return false;
  const auto plan = plan_of(draft);
  const auto& job = job_id(tasks.front());
  return std::any_of(plan.starts.begin(), plan.starts.end(),
                     [&](const placement::Start& start) { return start.job == job; });
}

}  // namespace

std::vector<std::string> remedies(const State& state, const std::vector<workload::Task>& tasks,
                                  TimePoint now) {
  if (state.queue.size() > kMostWaiting || tasks.empty()) return {};
  placement::Gang gang;
  for (const auto& task : tasks) gang.members.push_back(request_of(task));
  if (tasks.front().gang) gang.arrangement = tasks.front().gang->arrangement;
  auto cluster = state.cluster;
  std::vector<std::string> told;
  for (const auto& weaker : placement::weaker_that_fit(cluster, gang)) {
    if (told.size() == kMostTold) break;
    if (would_start(state, tasks, asking_for(weaker.gang, tasks), now)) told.push_back(weaker.remedy);
  }
  return told;
}

}  // namespace drover::control

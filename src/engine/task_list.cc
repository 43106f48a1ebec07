#include "engine/task_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "control/controller.h"
#include "engine/access.h"

namespace drover::engine {

using control::TaskRecord;

TaskRecord shown(const control::State& state, const TaskRecord& record, const Doings& doings) {
  auto copy = record;
  if (const auto doing = doings.find(record.task.id); doing != doings.end())
    copy.reason = doing->second;
  else if (record.state == control::TaskState::kQueued)
    copy.reason = fmt::format("{}", fmt::join(control::waiting_reasons(state, record), "; "));
  else if (const auto said = state.said.find(record.task.id); said != state.said.end())
    copy.reason = said->second;
  return copy;
}

void TaskList::each(const std::function<void(const TaskRecord&)>& visit) const {
  std::vector<const TaskRecord*> records;
  for (const auto& [id, record] : state_->tasks)
    if (may_see(caller_, record)) records.push_back(&record);
  std::ranges::sort(records, {}, &TaskRecord::sequence);
  for (const auto* record : records)
    if (record->state == control::TaskState::kQueued || record->state == control::TaskState::kStarting ||
        doings_.contains(record->task.id))
      visit(shown(*state_, *record, doings_));
    else
      visit(*record);
}

std::vector<TaskRecord> TaskList::records() const {
  std::vector<TaskRecord> records;
  each([&](const TaskRecord& record) { records.push_back(record); });
  return records;
}

}  // namespace drover::engine

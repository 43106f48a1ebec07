#include "api/mesos/executor_tasks.h"

#include "api/executor_tokens.h"

namespace drover::api::mesos {
namespace {

using control::TaskRecord;
using control::TaskState;

TaskState state_of(const std::string& told) {
  if (told.empty()) return TaskState::kQueued;
  for (const auto state : {TaskState::kStarting, TaskState::kStopping, TaskState::kFinished,
                           TaskState::kFailed, TaskState::kKilled})
    if (control::mesos_state(state) == told) return state;
  const bool lost = told == "TASK_LOST" || told == "TASK_GONE" || told == "TASK_ERROR" ||
                    told == "TASK_DROPPED" || told == "TASK_GONE_BY_OPERATOR";
  return lost ? TaskState::kLost : TaskState::kRunning;
}

TaskRecord record_of(const control::FrameworkTask& task, const TaskRecord& container) {
  const auto& amounts = task.within->amounts;
  TaskRecord record;
  record.task.id = task.id;
  record.task.name = task.name;
  record.task.user = container.task.user;
  record.task.owner = container.task.owner;
  record.task.owner_name = container.task.owner_name;
  record.task.origin = {workload::OriginKind::kFramework, task.framework, task.task_id, ""};
  record.task.resources = {};
  record.task.resources.attributes = container.task.resources.attributes;  // its agent
  record.node = container.node;
  if (amounts.gpus > 0) record.task.resources.gpus.push_back({amounts.gpus, {}});
  record.task.resources.milli_cpus = amounts.milli_cpus;
  record.task.resources.memory_bytes = amounts.memory_bytes;
  for (const auto& range : amounts.ports)
    for (int port = range.begin; port <= range.end; ++port) record.ports.push_back(port);
  record.sequence = container.sequence;
  record.state = state_of(task.told);
  record.stop_requested = record.state == TaskState::kStopping;
  record.gpus = amounts.gpus > 0 ? container.gpus : std::vector<placement::Grant>();
  if (!task.told.empty()) record.started_at = container.started_at;
  if (control::is_final(record.state) && !task.updates.empty()) record.finished_at = task.updates.back().at;
  return record;
}

}  // namespace

bool is_executor(const TaskRecord& record) {
  return record.task.origin.kind == workload::OriginKind::kFramework &&
         record.task.environment->contains(kExecutorToken);
}

std::vector<std::shared_ptr<const TaskRecord>> tasks_within(const control::State& state,
                                                            const std::string& framework) {
  std::vector<std::shared_ptr<const TaskRecord>> records;
  const auto prefix = control::framework_task_key(framework, "");
  for (auto row = state.framework_tasks.lower_bound(prefix);
       row != state.framework_tasks.end() && row->first.starts_with(prefix); ++row) {
    const auto* container = row->second.within ? state.find(row->second.id) : nullptr;
    if (container != nullptr)
      records.push_back(std::make_shared<const TaskRecord>(record_of(row->second, *container)));
  }
  return records;
}

}  // namespace drover::api::mesos

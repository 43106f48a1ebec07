#include "control/adoption.h"

namespace drover::control {
namespace {

/// As it was when it was started.
void take_over(TaskRecord& record, const TaskRecord& found) {
  record.gpus = found.gpus;
  record.cpus = found.cpus;
  record.nics = found.nics;
  record.ports = found.ports;
  record.gang_port = found.gang_port;
  record.preemptions = found.preemptions;
  record.failures = found.failures;
  record.preempted = record.tries_again = false;
  record.started_at.reset();
  record.steady_started_at.reset();
  record.finished_at.reset();
  record.steady_finished_at.reset();
  record.exit_status.reset();
  record.reason.clear();
  record.cause = Cause::kNone;
  if (record.state != TaskState::kStopping) record.state = TaskState::kStarting;
}

/// The folder is from before the instances of a task were made, and before its share was changed.
std::vector<placement::Grant> as_given(std::vector<placement::Grant> grants) {
  for (auto& grant : grants)
    if (grant.mig)
      grant.mig->uuid.clear();
    else
      grant = {grant.uuid};
  return grants;
}

}  // namespace

bool agrees(const TaskRecord* known, const TaskRecord& folder) {
  return known != nullptr && owns_resources(known->state) && attempt_of(*known) == attempt_of(folder) &&
         as_given(known->gpus) == as_given(folder.gpus) && known->cpus == folder.cpus &&
         known->nics == folder.nics && known->ports == folder.ports && known->gang_port == folder.gang_port;
}

void adopt(Draft& draft, const TaskRecord& found) {
  if (draft.find(found.task.id) != nullptr) return take_over(draft.change(found.task.id), found);
  TaskRecord record;
  record.task = found.task;
  record.task.origin = {};
  if (!draft.rules().queues.contains(record.task.queue)) record.task.queue = placement::kDefaultQueue;
  record.submitted_at = found.submitted_at;
  take_over(record, found);
  draft.add(std::move(record));
}

}  // namespace drover::control

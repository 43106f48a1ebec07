#include "api/mesos/seen_task.h"

#include "control/frameworks.h"

namespace drover::api::mesos {

SeenTask::SeenTask(const Snapshot& snapshot, const SeenFramework& its_framework,
                   const control::TaskRecord& task)
    : record(task),
      framework(its_framework.id),
      id(task.task.origin.task_id),
      executor(executor_of(*snapshot.state, task)),
      alone(executor == id),
      name(task_name(task)),
      state(control::mesos_state(task, its_framework.record)),
      held(control::held_by(task)) {}

}  // namespace drover::api::mesos

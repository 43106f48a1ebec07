#pragma once

// What a task is told in its environment of what it was made for, and of its ports. Pure.

#include <map>
#include <string>

#include "control/record.h"

namespace drover::control {

/// The environment of a task whose ports are known: what it says itself, and by its origin what those expect
/// who come from there: MARATHON_APP_ID …, PORT0, PORT, PORTS, PORT_NAME for a service, MESOS_TASK_ID and
/// HOST for all that nobody submitted himself, and what Mesos adds for services and runs of schedules.
/// `machine` and `id` are the name of this one and the id of the journal, as the state has them.
std::map<std::string, std::string> environment_of(const TaskRecord& record, const std::string& machine,
                                                  const std::string& id);

}  // namespace drover::control

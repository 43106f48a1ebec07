#pragma once

// Tasks that run though the journal does not know it: after it was lost, or replaced by an older one. Pure.

#include "control/draft.h"

namespace drover::control {

/// Whether the journal, which has `known` of a task that runs (null: nothing), agrees with what the task's
/// own folder says of where it runs.
bool agrees(const TaskRecord* known, const TaskRecord& folder);

/// Takes a task that runs into the state, with what it holds. Nothing but a person ends one that was not
/// known: it belongs to no service, schedule or framework any more.
void adopt(Draft& draft, const TaskRecord& found);

}  // namespace drover::control

#pragma once

// How a task's life ends, goes back to waiting, or is ended with that of its gang. Pure.

#include <string>

#include "control/draft.h"
#include "workload/ending.h"

namespace drover::control {

/// How a task ends.
struct End {
  TaskState state = TaskState::kFinished;
  Cause cause = Cause::kNone;
  std::string reason;
};

/// The task ends so; when it was a member of a gang and did not succeed, so do the others.
void end(Draft& draft, const std::string& id, End how, TimePoint at);

/// A container ended: the task ends by it, or waits again when it was preempted and may start afresh.
void container_ended(Draft& draft, const std::string& id, const workload::Ending& ending);
void launch_failed(Draft& draft, const std::string& id, const Error& error);
/// Nothing of it ran, and it waits again; a gang as a whole.
void put_back(Draft& draft, const std::string& id, const Error& error);
/// It is ended to make room, and waits again then.
void preempt(Draft& draft, const std::string& id, const std::string& why);
/// The same, and a gang as a whole, when others than we have ended it; nothing when it ends already.
void evict(Draft& draft, const std::string& id, const std::string& why);
/// A restart found that it never came to start.
void never_started(Draft& draft, const std::string& id);

/// Ends a waiting task, or asks a running one to end, because somebody wished it: `stop_requested` is set.
void stop(Draft& draft, const std::string& id, bool force);

}  // namespace drover::control

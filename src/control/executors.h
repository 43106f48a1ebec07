#pragma once

// Executors that frameworks bring themselves: one is a task of ours, with what it needs itself and what the
// tasks of its first launch need. What it is told and what it says is here as far as it must outlive the
// daemon; its connections are not. Pure.
//
// A later launch has no more than what ended tasks have left of that: the container stays as it is. GPUs are
// given with the first one only.

#include <optional>

#include "control/draft.h"
#include "control/event.h"

namespace drover::control {

/// An Error means that none of the tasks is launched. kUnavailable: another executor can have them, this one
/// is ending.
Status launch_on_executor(Draft& draft, const ExecutorLaunch& launch);
/// Also takes the updates that it has not seen acknowledged.
Status subscribe_executor(Draft& draft, const event::ExecutorSubscribed& event);
/// An update that was taken before, or follows the end of its task, changes nothing. kExhausted: too much is
/// not acknowledged; it may be sent again later.
Status update_by_executor(Draft& draft, const event::ExecutorUpdated& event);
/// From now on it has so much time to come again.
Status disconnect_executor(Draft& draft, const event::ExecutorDisconnected& event);
/// A task that no executor has been told of ends at once; its group with it.
Status kill_on_executor(Draft& draft, const event::ExecutorTaskKilled& event);

/// Its container runs: it has so much time to subscribe.
void executor_started(Draft& draft, const TaskRecord& record);
/// Ends those that did not subscribe in time.
void expire_executors(Draft& draft);
std::optional<TimePoint> next_executor_deadline(const State& state);
/// Of a framework that is removed.
void forget_executors(Draft& draft, const std::string& framework);
/// Tells of the tasks whose executor has ended, and forgets it.
void end_own_executors(Draft& draft);

/// The executor whose container this task is; null when it is none, or has ended.
const ExecutorRecord* executor_in(const State& state, const std::string& task);
/// The one that a framework means; where none is of the agent that it names, and only one has the id, it is
/// that. Null: there is none.
const ExecutorRecord* executor_named(const State& state, const std::string& framework,
                                     const std::string& executor, const std::string& agent);
/// Whether the executor need not send the update again.
bool is_taken(const State& state, const ExecutorRecord& executor, const ExecutorUpdate& update);
/// What Mesos calls the state of a task of a framework; null: its record is gone.
std::string mesos_state(const FrameworkTask& task, const TaskRecord* record,
                        const FrameworkRecord& framework);

}  // namespace drover::control

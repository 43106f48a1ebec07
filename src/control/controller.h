#pragma once

// The state machine of tasks: decide(state, event, now) → what changes, and what is to be done. Pure: no
// clock, no file, no thread. The caller journals the changes first, then applies them, then carries out the
// actions (decision 2). Every action is idempotent and keyed by the task, so it may be repeated after a
// crash.
//
// A preempted task is stopped, waits again with its old place in the order of arrival, and starts afresh. The
// members of a gang start together; when one of them fails or is stopped, the others are stopped.

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "control/state.h"
#include "workload/ending.h"

namespace drover::control {

namespace event {
struct Submitted {
  std::vector<workload::Task> tasks;  ///< one, or a gang by rank; complete: id, user, owner and gang are set
};
struct StopRequested {
  std::string id;  ///< of a task or of a gang
  bool force = false;
};
struct Started {
  std::string id;
  TimePoint at{};
};
struct Ended {
  std::string id;
  workload::Ending ending;
};
struct LaunchFailed {
  std::string id;
  Error error;
};
/// After a restart: the engine found that the task had never been started.
struct NeverStarted {
  std::string id;
};
/// After a restart: the task is alive (or its end is about to be told).
struct StillAlive {
  std::string id;
};
struct RemoveRequested {
  std::string id;
};
struct NodeChanged {
  placement::Node node;
};
/// New rules in place of the old ones. Refused when they are wrong, or lack a queue that has work.
struct RulesChanged {
  placement::Rules rules;
};
struct Tick {};
}  // namespace event

using Event = std::variant<event::Submitted, event::StopRequested, event::Started, event::Ended,
                           event::LaunchFailed, event::NeverStarted, event::StillAlive,
                           event::RemoveRequested, event::NodeChanged, event::RulesChanged, event::Tick>;

/// An Error refuses the event whole: nothing changes. Events about tasks that are over or unknown change
/// nothing, so duplicates are harmless; only requests of people get an error for them.
Result<Outcome> decide(const State& state, const Event& event, TimePoint now);

/// Why a queued task waits: one clause each, never none.
std::vector<std::string> waiting_reasons(const State& state, const TaskRecord& record);

/// When the next Tick is due because a task's time is up.
std::optional<TimePoint> next_deadline(const State& state);

/// Ended tasks and their sandboxes are kept this long, then forgotten (Mesos' gc_delay).
inline constexpr std::chrono::hours kKeepEnded{7 * 24};

}  // namespace drover::control

#pragma once

// The state machine of tasks: decide(state, event, now) → what changes, and what is to be done. Pure: no
// clock, no file, no thread. The caller journals the changes first, then applies them, then carries out the
// actions (decision 2). Every action is idempotent and keyed by the task, so it may be repeated after a
// crash.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "control/record.h"
#include "placement/whole.h"
#include "workload/ending.h"

namespace drover::control {

namespace event {
struct Submitted {
  workload::Task task;  ///< complete: id, user and owner are set
};
struct StopRequested {
  std::string id;
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
  placement::whole::Node node;
};
struct Tick {};
}  // namespace event

using Event = std::variant<event::Submitted, event::StopRequested, event::Started, event::Ended,
                           event::LaunchFailed, event::NeverStarted, event::StillAlive,
                           event::RemoveRequested, event::NodeChanged, event::Tick>;

namespace action {
struct Launch {
  std::string id;
};
struct Stop {
  std::string id;
  bool force = false;
};
/// The task has ended: what it left outside its sandbox can go.
struct Clean {
  std::string id;
};
/// The task is forgotten: its sandbox can go.
struct Forget {
  std::string id;
};
}  // namespace action

using Action = std::variant<action::Launch, action::Stop, action::Clean, action::Forget>;

struct State {
  placement::whole::Node node;
  std::map<std::string, TaskRecord> tasks;  ///< by id
  /// Ids of tasks that wait, by order of acceptance, and of those that own resources: kept by apply().
  std::map<std::uint64_t, std::string> queue;
  std::set<std::string> active;
  std::uint64_t next_sequence = 1;
};

struct Outcome {
  std::vector<TaskRecord> changed;
  std::vector<std::string> removed;
  std::vector<Action> actions;
  std::optional<placement::whole::Node> node;
};

/// An Error refuses the event whole: nothing changes. Events about tasks that are over or unknown change
/// nothing, so duplicates are harmless; only requests of people get an error for them.
Result<Outcome> decide(const State& state, const Event& event, TimePoint now);

/// Makes the outcome the state. Only after the journal has it.
void apply(State& state, const Outcome& outcome);

/// State as the journal left it: `records` in any order.
State restore(std::vector<TaskRecord> records, placement::whole::Node node);

/// What running tasks use.
placement::whole::Usage usage_of(const State& state);

/// Why each queued task waits, by id: one clause each, never none.
std::map<std::string, std::vector<std::string>> waiting_reasons(const State& state);

/// When the next Tick is due because a task's time is up.
std::optional<TimePoint> next_deadline(const State& state);

/// Ended tasks and their sandboxes are kept this long, then forgotten (Mesos' gc_delay).
inline constexpr std::chrono::hours kKeepEnded{7 * 24};

}  // namespace drover::control

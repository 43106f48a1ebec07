#include "control/controller.h"

#include <fmt/format.h>

#include <algorithm>

#include "control/queue.h"

namespace drover::control {
namespace {

/// The state with changes laid over it: what decide() works on.
class Draft {
 public:
  Draft(const State& state, TimePoint now) : state_(state), now_(now) {}

  const State& base() const { return state_; }
  TimePoint now() const { return now_; }

  const TaskRecord* find(const std::string& id) const {
    if (const auto changed = changed_.find(id); changed != changed_.end()) return &changed->second;
    const auto stored = state_.tasks.find(id);
    return stored == state_.tasks.end() ? nullptr : &stored->second;
  }
  TaskRecord& change(const std::string& id) {
    const auto found = changed_.find(id);
    return found != changed_.end() ? found->second : changed_.emplace(id, state_.tasks.at(id)).first->second;
  }
  void add(TaskRecord record) { changed_.emplace(record.task.id, std::move(record)); }
  void act(Action action) { outcome_.actions.push_back(std::move(action)); }
  void remove(const std::string& id) {
    outcome_.removed.push_back(id);
    act(action::Forget{id});
  }
  void set_node(placement::whole::Node node) { outcome_.node = std::move(node); }
  const placement::whole::Node& node() const { return outcome_.node ? *outcome_.node : state_.node; }

  void end(TaskRecord& record, TaskState state, std::string reason, TimePoint at) {
    record.state = state;
    record.reason = std::move(reason);
    record.finished_at = at;
    act(action::Clean{record.task.id});
  }

  /// The records that wait, by order of acceptance, as the draft has them.
  std::vector<const TaskRecord*> waiting() const {
    std::map<std::uint64_t, const TaskRecord*> ordered;
    for (const auto& [sequence, id] : state_.queue) ordered.emplace(sequence, find(id));
    for (const auto& [id, record] : changed_) ordered.emplace(record.sequence, &record);
    std::vector<const TaskRecord*> result;
    for (const auto& [sequence, record] : ordered)
      if (record->state == TaskState::kQueued) result.push_back(record);
    return result;
  }
  placement::whole::Usage usage() const {
    placement::whole::Usage usage;
    for (const auto& id : state_.active)
      if (!changed_.contains(id)) add_usage(usage, state_.tasks.at(id));
    for (const auto& [id, record] : changed_)
      if (owns_resources(record.state)) add_usage(usage, record);
    return usage;
  }

  Outcome finish() && {
    for (auto& [id, record] : changed_) outcome_.changed.push_back(std::move(record));
    return std::move(outcome_);
  }

 private:
  const State& state_;
  TimePoint now_;
  std::map<std::string, TaskRecord> changed_;
  Outcome outcome_;
};

Failure no_such_task(const std::string& id) {
  return fail(ErrorKind::kNotFound, fmt::format("There is no task '{}'", id),
              "'drover ps -a' lists your tasks");
}

Status handle(Draft& draft, const event::Submitted& event) {
  if (draft.find(event.task.id) != nullptr)
    return fail(ErrorKind::kConflict, fmt::format("There is a task '{}' already", event.task.id));
  DROVER_CHECK_OK(placement::whole::possible(draft.node(), request_of(event.task)));
  TaskRecord record;
  record.task = event.task;
  record.sequence = draft.base().next_sequence;
  record.submitted_at = draft.now();
  draft.add(std::move(record));
  return {};
}

Status handle(Draft& draft, const event::StopRequested& event) {
  const auto* found = draft.find(event.id);
  if (found == nullptr) return no_such_task(event.id);
  if (is_final(found->state))
    return fail(ErrorKind::kConflict, fmt::format("The task '{}' has ended already", event.id));
  auto& record = draft.change(event.id);
  record.stop_requested = true;
  if (record.state == TaskState::kQueued) {
    draft.end(record, TaskState::kKilled, "stopped while it waited", draft.now());
    return {};
  }
  record.state = TaskState::kStopping;
  draft.act(action::Stop{event.id, event.force});
  return {};
}

Status handle(Draft& draft, const event::Started& event) {
  const auto* found = draft.find(event.id);
  if (found == nullptr || !owns_resources(found->state) || found->started_at) return {};
  auto& record = draft.change(event.id);
  record.started_at = event.at;
  if (record.state == TaskState::kStarting) record.state = TaskState::kRunning;
  return {};
}

std::pair<TaskState, std::string> judge(const TaskRecord& record, const workload::Ending& ending) {
  if (ending.lost) return {TaskState::kLost, ending.message};
  if (record.timed_out)
    return {TaskState::kFailed,
            fmt::format("stopped because its time of {} was up", format_duration(*record.task.timeout))};
  if (ending.exit_status == 0) return {TaskState::kFinished, ""};
  if (record.stop_requested) return {TaskState::kKilled, "stopped on request"};
  if (ending.out_of_memory)
    return {TaskState::kFailed,
            fmt::format("killed because it used more than its {} of memory; ask for more with --mem",
                        format_bytes(record.task.resources.memory_bytes))};
  if (!ending.message.empty()) return {TaskState::kFailed, ending.message};
  if (ending.exit_status > 128)
    return {TaskState::kFailed, fmt::format("ended by signal {}", ending.exit_status - 128)};
  return {TaskState::kFailed, fmt::format("exited with status {}", ending.exit_status)};
}

Status handle(Draft& draft, const event::Ended& event) {
  const auto* found = draft.find(event.id);
  if (found == nullptr || !owns_resources(found->state)) return {};
  auto& record = draft.change(event.id);
  if (!event.ending.lost) record.exit_status = event.ending.exit_status;
  auto [state, reason] = judge(record, event.ending);
  draft.end(record, state, std::move(reason), event.ending.finished_at);
  return {};
}

Status handle(Draft& draft, const event::LaunchFailed& event) {
  const auto* found = draft.find(event.id);
  if (found == nullptr || !owns_resources(found->state)) return {};
  auto& record = draft.change(event.id);
  const auto state = record.stop_requested ? TaskState::kKilled : TaskState::kFailed;
  draft.end(record, state, to_string(event.error), draft.now());
  return {};
}

Status handle(Draft& draft, const event::NeverStarted& event) {
  const auto* found = draft.find(event.id);
  if (found == nullptr || !owns_resources(found->state)) return {};
  if (found->started_at) {
    draft.end(draft.change(event.id), TaskState::kLost, "its folder is gone: nobody can say how it ended",
              draft.now());
  } else if (found->stop_requested) {
    draft.end(draft.change(event.id), TaskState::kKilled, "stopped before it started", draft.now());
  } else {
    draft.act(action::Launch{event.id});
  }
  return {};
}

Status handle(Draft& draft, const event::StillAlive& event) {
  const auto* found = draft.find(event.id);
  if (found != nullptr && found->state == TaskState::kStopping) draft.act(action::Stop{event.id, false});
  return {};
}

Status handle(Draft& draft, const event::RemoveRequested& event) {
  const auto* found = draft.find(event.id);
  if (found == nullptr) return no_such_task(event.id);
  if (!is_final(found->state))
    return fail(ErrorKind::kConflict,
                fmt::format("The task '{}' is still {}", event.id, to_string(found->state)),
                fmt::format("stop it first: drover stop {}", event.id));
  draft.remove(event.id);
  return {};
}

Status handle(Draft& draft, const event::NodeChanged& event) {
  draft.set_node(event.node);
  return {};
}

std::optional<TimePoint> deadline_of(const TaskRecord& record) {
  if (!record.task.timeout || !record.started_at || record.state != TaskState::kRunning) return std::nullopt;
  return *record.started_at + *record.task.timeout;
}

Status handle(Draft& draft, const event::Tick&) {
  for (const auto& id : draft.base().active) {
    const auto deadline = deadline_of(*draft.find(id));
    if (!deadline || *deadline > draft.now()) continue;
    auto& record = draft.change(id);
    record.timed_out = true;
    record.state = TaskState::kStopping;
    draft.act(action::Stop{id, false});
  }
  for (const auto& [id, record] : draft.base().tasks)
    if (is_final(record.state) && record.finished_at && *record.finished_at + kKeepEnded < draft.now())
      draft.remove(id);
  return {};
}

/// First come, first served; see queue.h for what may pass whom.
void start_what_fits(Draft& draft) {
  auto usage = draft.usage();
  Reservation ahead;
  std::vector<std::pair<std::string, placement::whole::Decision>> starts;
  for (const auto* record : draft.waiting()) {
    const auto request = request_of(record->task);
    if (must_wait(ahead, request)) {
      ahead.add(request);
      continue;
    }
    auto answer = place_behind(draft.node(), usage, ahead, request);
    if (auto* decision = std::get_if<placement::whole::Decision>(&answer)) {
      usage.gpus.insert(decision->gpus.begin(), decision->gpus.end());
      usage.milli_cpus += request.milli_cpus;
      usage.memory_bytes += request.memory_bytes;
      starts.emplace_back(record->task.id, std::move(*decision));
    } else {
      ahead.add(request);
    }
  }
  for (auto& [id, decision] : starts) {
    auto& record = draft.change(id);
    record.state = TaskState::kStarting;
    for (auto& uuid : decision.gpus) record.gpus.push_back({std::move(uuid)});
    draft.act(action::Launch{id});
  }
}

}  // namespace

Result<Outcome> decide(const State& state, const Event& event, TimePoint now) {
  Draft draft(state, now);
  DROVER_CHECK_OK(std::visit([&](const auto& specific) { return handle(draft, specific); }, event));
  start_what_fits(draft);
  return std::move(draft).finish();
}

void apply(State& state, const Outcome& outcome) {
  const auto index = [&](const TaskRecord& record) {
    if (record.state == TaskState::kQueued)
      state.queue[record.sequence] = record.task.id;
    else
      state.queue.erase(record.sequence);
    if (owns_resources(record.state))
      state.active.insert(record.task.id);
    else
      state.active.erase(record.task.id);
    state.next_sequence = std::max(state.next_sequence, record.sequence + 1);
  };
  for (const auto& record : outcome.changed) {
    state.tasks[record.task.id] = record;
    index(record);
  }
  for (const auto& id : outcome.removed) {
    state.tasks.erase(id);
    state.active.erase(id);
  }
  if (outcome.node) state.node = *outcome.node;
}

State restore(std::vector<TaskRecord> records, placement::whole::Node node) {
  State state;
  Outcome outcome;
  outcome.changed = std::move(records);
  outcome.node = std::move(node);
  apply(state, outcome);
  return state;
}

placement::whole::Usage usage_of(const State& state) {
  placement::whole::Usage usage;
  for (const auto& id : state.active) add_usage(usage, state.tasks.at(id));
  return usage;
}

std::map<std::string, std::vector<std::string>> waiting_reasons(const State& state) {
  std::map<std::string, std::vector<std::string>> result;
  const auto usage = usage_of(state);
  Reservation ahead;
  for (const auto& [sequence, id] : state.queue) {
    const auto request = request_of(state.tasks.at(id).task);
    const auto answer = place_behind(state.node, usage, ahead, request);
    const auto* reasons = std::get_if<placement::whole::Reasons>(&answer);
    result[id] = reasons != nullptr ? reasons->list : std::vector<std::string>{"it is about to start"};
    ahead.add(request);
  }
  return result;
}

std::optional<TimePoint> next_deadline(const State& state) {
  std::optional<TimePoint> next;
  for (const auto& id : state.active)
    if (const auto deadline = deadline_of(state.tasks.at(id)); deadline && (!next || *deadline < *next))
      next = deadline;
  return next;
}

}  // namespace drover::control

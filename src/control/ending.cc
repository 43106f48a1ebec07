#include "control/ending.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace drover::control {
namespace {

/// Others are told whom their end is owed to: `cause` is "rank 2 of its gang: exited with status 3".
void end_rest_of_gang(Draft& draft, const TaskRecord& member, const std::string& cause, bool force) {
  if (!member.task.gang) return;
  for (const auto* other : members_of(member.task, draft.finder())) {
    if (other->task.id == member.task.id || is_final(other->state)) continue;
    const bool ends_already = other->state == TaskState::kStopping && !other->preempted;
    if ((ends_already || other->stop_requested) && !force) continue;
    auto& record = draft.change(other->task.id);
    if (record.gang_reason.empty()) record.gang_reason = cause;
    if (!is_under_way(record)) {
      record.state = TaskState::kKilled;
      record.cause = Cause::kGang;
      record.reason = "stopped because of " + cause;
      record.finished_at = draft.now();
      draft.act(action::Clean{record.task.id});
      continue;
    }
    record.preempted = record.tries_again = record.asked = false;
    record.state = TaskState::kStopping;
    draft.act(action::Stop{record.task.id, force});
  }
}

/// They are put back with it.
void preempt_rest_of_gang(Draft& draft, const TaskRecord& record, const std::string& why) {
  for (const auto* member : members_of(record.task, draft.finder()))
    if (member->task.id != record.task.id && is_under_way(*member) && !member->preempted)
      preempt(draft, member->task.id, why);
}

std::string cause_of(const TaskRecord& member, const std::string& reason) {
  return fmt::format("rank {} of its gang: {}", member.task.gang->rank, reason);
}

/// It will start afresh: nothing is left of this attempt but its sandbox.
void requeue(Draft& draft, TaskRecord& record) {
  record.state = TaskState::kQueued;
  record.preempted = record.asked = false;
  record.node.clear();
  record.address.clear();
  record.gpus.clear();
  record.cpus.clear();
  record.nics.clear();
  record.ports.clear();
  record.gang_port = 0;
  record.started_at.reset();
  record.steady_started_at.reset();
  record.exit_status.reset();
  record.overran.clear();
  record.shrunk_from = 0;
  draft.act(action::Clean{record.task.id});
}

/// A framework launches again by itself, on another offer, and some want to be told rather than to start
/// again. All of a gang were preempted at once: nobody of it is left to be ended because of this one.
void end_preempted(Draft& draft, TaskRecord& record, TimePoint at) {
  record.state = TaskState::kKilled;
  record.cause = Cause::kPreempted;
  record.finished_at = at;
  draft.act(action::Clean{record.task.id});
}

void wait_to_try_again(Draft& draft, TaskRecord& record) {
  record.tries_again = false;
  record.retry_at = draft.steady() + workload::retry_delay(record.failures);
  requeue(draft, record);
}

void make_room(Draft& draft, TaskRecord& record, TimePoint at) {
  if (record.tries_again) {
    draft.attempt_over(record.task.id, {AllocationEnd::kKilled, Cause::kGang, at});
    ++record.failures;
    return wait_to_try_again(draft, record);
  }
  draft.attempt_over(record.task.id, {AllocationEnd::kPreempted, Cause::kPreempted, at});
  if (!restarts_after_preemption(record.task)) return end_preempted(draft, record, at);
  ++record.preemptions;
  requeue(draft, record);
}

/// Whether it may start once more after it came to `state`.
bool may_try_again(const Draft& draft, const TaskRecord& record, TaskState state) {
  const auto& batch = record.task.batch;
  const bool failed = state == TaskState::kFailed || state == TaskState::kLost;
  const bool was_lost = state == TaskState::kLost && batch.requeue == workload::Requeue::kLost;
  if (!failed || (record.failures >= batch.retries && !was_lost)) return false;
  if (record.stop_requested || record.timed_out || record.idled || !record.overdrawn.empty() ||
      !record.gang_reason.empty())
    return false;
  const auto has_ended = [](const TaskRecord* member) { return is_final(member->state); };
  return std::ranges::none_of(members_of(record.task, draft.finder()), has_ended);
}

/// A gang starts again as a whole: what still runs of it is ended.
void try_again(Draft& draft, const std::string& id, const End& how, TimePoint at) {
  auto& record = draft.change(id);
  const bool is_lost = how.state == TaskState::kLost;
  draft.attempt_over(id, {is_lost ? AllocationEnd::kLost : AllocationEnd::kFailed, how.cause, at});
  for (const auto* member : members_of(record.task, draft.finder())) {
    if (member->task.id == id || member->tries_again || !is_under_way(*member)) continue;
    auto& other = draft.change(member->task.id);
    other.tries_again = other.preempted = true;
    other.asked = false;
    other.state = TaskState::kStopping;
    other.reason = cause_of(record, how.reason);
    draft.act(action::Stop{other.task.id, false});
  }
  record.reason = how.reason;
  ++record.failures;
  wait_to_try_again(draft, record);
}

/// The end of an attempt, which is that of the task when it is not tried again.
void conclude(Draft& draft, const std::string& id, End how, TimePoint at) {
  if (may_try_again(draft, *draft.find(id), how.state)) return try_again(draft, id, how, at);
  end(draft, id, std::move(how), at);
}

/// Whether this end is that of a preempted task. One that came to its end by itself before it was asked has
/// come to its end; but a gang is put back as a whole.
bool makes_room(const TaskRecord& record, const workload::Ending& ending) {
  if (!record.preempted || record.stop_requested || !record.overdrawn.empty()) return false;
  if (record.tries_again) return true;
  if (ending.lost) return false;
  if (ending.stopped) return true;
  return record.task.gang && ending.exit_status == 0 && restarts_after_preemption(record.task);
}

std::string want_of_memory(const workload::Task& task) {
  const auto used = fmt::format("killed because it used more than its {} of memory",
                                format_bytes(task.resources.memory_bytes));
  if (!task.may_exceed_memory()) return used + "; ask for more with --mem";
  const auto most = task.most_memory_bytes();
  const auto limit = most > 0 ? fmt::format(", or its limit of {} was reached", format_bytes(most)) : "";
  return used + ": the machine had no more" + limit;
}

End because_of_gang(const TaskRecord& record) {
  return {TaskState::kKilled, Cause::kGang, "stopped because of " + record.gang_reason};
}

End judge(const TaskRecord& record, const workload::Ending& ending) {
  using enum TaskState;
  if (ending.lost) return {kLost, Cause::kLost, ending.message};
  if (record.timed_out)
    return {kFailed, Cause::kTimeLimit,
            fmt::format("stopped because its time of {} was up", format_duration(*record.task.timeout))};
  if (record.idled)
    return {
        kFailed, Cause::kIdle,
        fmt::format("stopped because its GPUs did nothing for {}",
                    exact_duration(record.task.batch.idle_timeout.value_or(std::chrono::milliseconds(0))))};
  if (!record.overdrawn.empty()) return {kFailed, Cause::kDisk, "killed because " + record.overdrawn};
  if (!record.overran.empty()) return {kFailed, Cause::kShare, "killed because " + record.overran};
  if (!record.unhealthy.empty()) return {kFailed, Cause::kUnhealthy, "killed because " + record.unhealthy};
  if (!record.stop_reason.empty()) return {kKilled, Cause::kStopped, record.stop_reason};
  // Many end with 0 when they are asked to end: that is no success. One that had ended before has succeeded.
  if (ending.exit_status == 0 && !(record.stop_requested && ending.stopped)) return {};
  if (record.stop_requested) return {kKilled, Cause::kStopped, "stopped on request"};
  if (!record.gang_reason.empty() && ending.stopped) return because_of_gang(record);
  if (ending.out_of_memory) return {kFailed, Cause::kOutOfMemory, want_of_memory(record.task)};
  const bool by_signal = ending.exit_status > 128;
  const auto cause = by_signal ? Cause::kSignal : Cause::kExit;
  if (!ending.message.empty()) return {kFailed, cause, ending.message};
  if (by_signal) return {kFailed, cause, fmt::format("ended by signal {}", ending.exit_status - 128)};
  return {kFailed, cause, fmt::format("exited with status {}", ending.exit_status)};
}

}  // namespace

void end(Draft& draft, const std::string& id, End how, TimePoint at) {
  auto& record = draft.change(id);
  record.state = how.state;
  record.cause = how.cause;
  record.preempted = record.tries_again = record.asked = false;
  record.reason = std::move(how.reason);
  record.finished_at = at;
  draft.act(action::Clean{id});
  if (how.state != TaskState::kFinished && record.task.gang && record.gang_reason.empty())
    end_rest_of_gang(draft, record, cause_of(record, record.reason), false);
}

void container_ended(Draft& draft, const std::string& id, const workload::Ending& ending) {
  auto& record = draft.change(id);
  if (!ending.lost) record.exit_status = ending.exit_status;
  if (makes_room(record, ending)) return make_room(draft, record, ending.finished_at);
  conclude(draft, id, judge(record, ending), ending.finished_at);
}

void launch_failed(Draft& draft, const std::string& id, const Error& error) {
  auto& record = draft.change(id);
  if (record.preempted && !record.stop_requested) return make_room(draft, record, draft.now());
  if (!record.gang_reason.empty()) return end(draft, id, because_of_gang(record), draft.now());
  if (record.stop_requested)
    return end(draft, id, {TaskState::kKilled, Cause::kStopped, to_string(error)}, draft.now());
  conclude(draft, id, {TaskState::kFailed, Cause::kNotStarted, to_string(error)}, draft.now());
}

void put_back(Draft& draft, const std::string& id, const Error& error) {
  const auto& found = *draft.find(id);
  const bool ends = found.started_at || found.stop_requested || found.timed_out || found.idled ||
                    !found.gang_reason.empty();
  // What starts again alone would wait for the others for ever.
  const bool is_alone = found.task.gang && !restarts_after_preemption(found.task);
  if (ends || found.preempted || is_alone || is_of_framework(found.task))
    return launch_failed(draft, id, error);
  preempt_rest_of_gang(draft, found, "put back with its gang: " + error.message);
  requeue(draft, draft.change(id));
}

void preempt(Draft& draft, const std::string& id, const std::string& why) {
  auto& record = draft.change(id);
  record.preempted = true;
  record.asked = false;
  record.state = TaskState::kStopping;
  record.reason = why;
  draft.act(action::Stop{id, false});
}

void evict(Draft& draft, const std::string& id, const std::string& why) {
  if (draft.find(id)->state == TaskState::kStopping) return;
  preempt(draft, id, why);
  preempt_rest_of_gang(draft, *draft.find(id), "put back with its gang: " + why);
}

void never_started(Draft& draft, const std::string& id) {
  auto& record = draft.change(id);
  if (record.started_at)
    conclude(draft, id, {TaskState::kLost, Cause::kLost, "its folder is gone: nobody can say how it ended"},
             draft.now());
  else if (record.stop_requested)
    end(draft, id, {TaskState::kKilled, Cause::kStopped, "stopped before it started"}, draft.now());
  else if (!record.gang_reason.empty())
    end(draft, id, because_of_gang(record), draft.now());
  else if (record.preempted)
    make_room(draft, record, draft.now());
  else if (draft.base().placed_by_others)
    requeue(draft, record);
  else
    draft.act(action::Launch{id});
}

void stop(Draft& draft, const std::string& id, bool force) {
  auto& record = draft.change(id);
  if (!is_under_way(record))
    return end(draft, id,
               {TaskState::kKilled, Cause::kStopped,
                record.stop_reason.empty() ? "stopped while it waited" : record.stop_reason},
               draft.now());
  record.preempted = record.tries_again = record.asked = false;
  record.state = TaskState::kStopping;
  draft.act(action::Stop{id, force});
  if (record.task.gang) end_rest_of_gang(draft, record, cause_of(record, "stopped on request"), force);
}

}  // namespace drover::control

#include "control/controller.h"

#include <fmt/format.h>

#include <algorithm>

#include "control/admission.h"
#include "control/adoption.h"
#include "control/cordons.h"
#include "control/deadlines.h"
#include "control/dependencies.h"
#include "control/ending.h"
#include "control/executors.h"
#include "control/frameworks.h"
#include "control/instances.h"
#include "control/invariants.h"
#include "control/node_rules.h"
#include "control/placing.h"
#include "control/planning.h"
#include "control/resizing.h"
#include "control/schedules.h"
#include "control/services.h"
#include "control/submission.h"

namespace drover::control {
namespace {

Failure no_such_task(const std::string& id) {
  return fail(ErrorKind::kNotFound, fmt::format("There is no task '{}'", id),
              "'drover ps -a' lists your tasks");
}

/// The record when there is one of which something may be outside, by this attempt; else null: what happened
/// to it is of no matter.
const TaskRecord* find_active(const Draft& draft, const std::string& id,
                              std::optional<int> attempt = std::nullopt) {
  const auto* record = draft.find(id);
  if (record == nullptr || !is_under_way(*record)) return nullptr;
  return attempt.value_or(attempt_of(*record)) == attempt_of(*record) ? record : nullptr;
}

Status handle(Draft& draft, const event::Submitted& event) {
  return submit(draft, event.tasks);
}

Status handle(Draft& draft, const event::StopRequested& event) {
  std::vector<std::string> ids;
  for (const auto* task : draft.tasks_under(event.id)) ids.push_back(task->task.id);
  if (ids.empty()) return no_such_task(event.id);
  std::erase_if(ids, [&](const auto& id) { return is_final(draft.find(id)->state); });
  if (ids.empty())
    return fail(ErrorKind::kConflict, fmt::format("The task '{}' has ended already", event.id));
  for (const auto& id : ids) draft.change(id).stop_requested = true;
  for (const auto& id : ids) stop(draft, id, event.force);
  return {};
}

Status handle(Draft& draft, const event::ResizeRequested& event) {
  if (draft.find(event.id) == nullptr) return no_such_task(event.id);
  return resize(draft, event.id, event.share);
}

Status handle(Draft& draft, const event::Placed& event) {
  if (find_active(draft, event.id, event.attempt) != nullptr) placed(draft, event);
  return {};
}

Status handle(Draft& draft, const event::Waits& event) {
  const auto* record = draft.find(event.id);
  if (record != nullptr && (record->asked || record->state == TaskState::kStarting))
    draft.say(event.id, event.why);
  return {};
}

Status handle(Draft& draft, const event::Evicted& event) {
  if (find_active(draft, event.id, event.attempt) != nullptr) evict(draft, event.id, event.why);
  return {};
}

Status handle(Draft& draft, const event::Started& event) {
  const auto* found = find_active(draft, event.id, event.attempt);
  if (found == nullptr || found->started_at) return {};
  auto& record = draft.change(event.id);
  record.started_at = event.at;
  // It may be told late.
  record.steady_started_at = draft.steady() - std::max(draft.now() - event.at, TimePoint::duration::zero());
  // One that was taken over had it before.
  if (record.steady_held_since > record.steady_started_at)
    record.steady_held_since = record.steady_started_at;
  record.containerizer = event.containerizer;
  record.address = event.address;
  record.tier = event.tier;
  for (std::size_t i = 0; i < std::min(event.parts.size(), record.gpus.size()); ++i)
    if (auto& mig = record.gpus[i].mig) mig->uuid = event.parts[i];
  if (record.state == TaskState::kStarting) record.state = TaskState::kRunning;
  executor_started(draft, record);
  return {};
}

Status handle(Draft& draft, const event::Ended& event) {
  if (find_active(draft, event.id, event.attempt) == nullptr) return {};
  if (event.use) draft.change(event.id).use = event.use;
  container_ended(draft, event.id, event.ending);
  return {};
}

Status handle(Draft& draft, const event::Overdrawn& event) {
  if (find_active(draft, event.id) == nullptr) return {};
  auto& record = draft.change(event.id);
  if (record.overdrawn.empty()) record.overdrawn = event.why;
  stop(draft, event.id, true);
  return {};
}

Status handle(Draft& draft, const event::Idled& event) {
  const auto* found = find_active(draft, event.id);
  if (found == nullptr || found->state != TaskState::kRunning) return {};
  auto& record = draft.change(event.id);
  record.idled = true;
  record.state = TaskState::kStopping;
  draft.act(action::Stop{event.id, false});
  return {};
}

Status handle(Draft& draft, const event::Overran& event) {
  if (find_active(draft, event.id) == nullptr) return {};
  auto& record = draft.change(event.id);
  if (record.overran.empty()) record.overran = event.why;
  record.state = TaskState::kStopping;
  draft.act(action::Stop{event.id, true});
  return {};
}

Status handle(Draft& draft, const event::LaunchFailed& event) {
  if (find_active(draft, event.id, event.attempt) != nullptr) launch_failed(draft, event.id, event.error);
  return {};
}

Status handle(Draft& draft, const event::PutBack& event) {
  if (find_active(draft, event.id, event.attempt) != nullptr) put_back(draft, event.id, event.error);
  return {};
}

Status handle(Draft& draft, const event::NeverStarted& event) {
  if (find_active(draft, event.id) != nullptr) never_started(draft, event.id);
  return {};
}

Status handle(Draft& draft, const event::StillAlive& event) {
  const auto* found = draft.find(event.id);
  if (found != nullptr && found->state == TaskState::kStopping) draft.act(action::Stop{event.id, false});
  return {};
}

Status handle(Draft& draft, const event::Adopted& event) {
  for (const auto& record : event.records) adopt(draft, record);
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
  auto node = event.node;
  node.foreign_ports = draft.machine().foreign_ports;
  draft.set_node(with_cordons(std::move(node), draft.rules()));
  return {};
}

Status handle(Draft& draft, const event::NodesChanged& event) {
  for (const auto& id : ruled_otherwise(draft, *event.nodes))
    evict(draft, id, "other nodes have come, or have gone: where it may be is said anew");
  draft.set_nodes(event.nodes);
  return {};
}

Status handle(Draft& draft, const event::ForeignPortsSeen& event) {
  auto node = draft.machine();
  node.foreign_ports = event.ports;
  draft.set_node(std::move(node));
  return {};
}

Status handle(Draft& draft, const event::RulesChanged& event) {
  DROVER_CHECK_OK(placement::validate(event.rules));
  std::map<std::string, int> lost;
  for (const auto& [id, record] : draft.base().tasks) {
    const auto& queue = record.task.queue;
    if (!is_final(record.state) && draft.rules().queues.contains(queue) &&
        !event.rules.queues.contains(queue) && queue != placement::kDefaultQueue)
      ++lost[queue];
  }
  if (!lost.empty())
    return fail(ErrorKind::kConflict,
                fmt::format("The queue '{}' has {} {}", lost.begin()->first, lost.begin()->second,
                            lost.begin()->second == 1 ? "task" : "tasks"),
                "wait until they have ended, or stop them", "/queue");
  if (event.rules.cordons != draft.rules().cordons)
    draft.set_node(with_cordons(draft.machine(), event.rules));
  draft.set_rules(event.rules);
  return {};
}

Status handle(Draft& draft, const event::ScheduleDefined& event) {
  return define_schedule(draft, event.schedule);
}

Status handle(Draft& draft, const event::ScheduleRemoved& event) {
  return remove_schedule(draft, event.name);
}

Status handle(Draft& draft, const event::ScheduleRunRequested& event) {
  return run_schedule(draft, event.name, event.arguments);
}

Status handle(Draft& draft, const event::ScheduleKilled& event) {
  return kill_schedule(draft, event.name);
}

Status handle(Draft& draft, const event::ScheduleMarked& event) {
  return mark_schedule(draft, event.name);
}

Status handle(Draft& draft, const event::ScheduleProgressed& event) {
  return add_elements(draft, event.name, event.run, event.elements);
}

Status handle(Draft& draft, const event::Tick&) {
  fire_schedules(draft);
  release_due(draft);
  for (const auto& id : draft.base().active) {
    const auto deadline = deadline_of(*draft.find(id));
    if (!deadline || *deadline > draft.steady()) continue;
    auto& record = draft.change(id);
    record.timed_out = true;
    record.state = TaskState::kStopping;
    draft.act(action::Stop{id, false});
  }
  for (const auto& [at, id] : draft.base().ended) {
    if (at + draft.base().keep_ended >= draft.steady()) break;
    draft.remove(id);
  }
  expire_frameworks(draft);
  expire_executors(draft);
  return {};
}

Status handle(Draft& draft, const event::Noted& event) {
  std::optional<TaskRecord> record;
  if (!event.task.empty()) {
    const auto* found = draft.find(event.task);
    if (found == nullptr) return no_such_task(event.task);
    record = *found;
  }
  draft.notify(notice::Noted{event.kind, std::move(record), event.message});
  return {};
}

Status handle(Draft& draft, const event::ServicesChanged& event) {
  DROVER_CHECK_OK(admit(draft, event));
  if (draft.base().placed_by_others)
    for (const auto& service : event.put) DROVER_CHECK_OK(check_node_rules(service));
  return change_services(draft, event);
}

Status handle(Draft& draft, const event::InstancesKilled& event) {
  return kill_instances(draft, event);
}

Status handle(Draft& draft, const event::DeploymentCancelled& event) {
  return cancel_deployment(draft, event);
}

Status handle(Draft& draft, const event::DelayReset& event) {
  return reset_delay(draft, event.service);
}

Status handle(Draft& draft, const event::ImagesKnown& event) {
  draft.set_images(event.images);
  return {};
}

Status handle(Draft& draft, const event::Checked& event) {
  const auto* task = draft.find(event.result.task);
  if (task != nullptr && task->task.origin.kind == workload::OriginKind::kFramework)
    take_framework_check(draft, event.result);
  else
    take_check(draft, event.result);
  return {};
}

Status handle(Draft& draft, const event::FrameworkSubscribed& event) {
  return subscribe_framework(draft, event.id, event.record);
}

Status handle(Draft& draft, const event::FrameworkDisconnected& event) {
  return disconnect_framework(draft, event.id, event.patience);
}

Status handle(Draft& draft, const event::FrameworkTornDown& event) {
  return remove_framework(draft, event.id);
}

Status handle(Draft& draft, const event::FrameworkLaunched& event) {
  return launch_for_framework(draft, event.launches);
}

Status handle(Draft& draft, const event::UpdateAcknowledged& event) {
  return acknowledge_update(draft, event.framework, event.task_id, event.uuid);
}

Status handle(Draft& draft, const event::ExecutorLaunched& event) {
  return launch_on_executor(draft, event.launch);
}

Status handle(Draft& draft, const event::ExecutorSubscribed& event) {
  return subscribe_executor(draft, event);
}

Status handle(Draft& draft, const event::ExecutorUpdated& event) {
  return update_by_executor(draft, event);
}

Status handle(Draft& draft, const event::ExecutorDisconnected& event) {
  return disconnect_executor(draft, event);
}

Status handle(Draft& draft, const event::ExecutorTaskKilled& event) {
  return kill_on_executor(draft, event);
}

/// Whether the last plan left it out because of those before it.
bool is_behind(const State& state, const TaskRecord& record) {
  const auto* first = record.task.gang ? state.find(member_id(record.task.gang->id, 0)) : &record;
  return first != nullptr && state.positions &&
         std::ranges::binary_search(state.positions->behind, first->sequence);
}

enum class Planning { kUsual, kNone };

Result<Outcome> decide(const State& state, const Event& event, Moment now, Planning planning) {
  Draft draft(state, now);
  DROVER_CHECK_OK(std::visit([&](const auto& specific) { return handle(draft, specific); }, event));
  settle_dependencies(draft);
  follow_runs(draft);
  advance_services(draft, std::holds_alternative<event::Tick>(event));
  if (planning == Planning::kUsual && draft.plan_is_due()) {
    if (state.placed_by_others)
      ask_for_places(draft);
    else
      carry_out(draft, plan_of(draft));
  }
  notify_frameworks(draft);
  return std::move(draft).finish();
}

}  // namespace

Result<Outcome> decide(const State& state, const Event& event, Moment now) {
  DROVER_TRY(auto outcome, decide(state, event, now, Planning::kUsual));
  // What is true already is no decision.
  if (std::holds_alternative<event::Adopted>(event)) return outcome;
  auto broken = broken_invariant(state, outcome);
  if (!broken) return outcome;
  // What has happened counts all the same; only nothing is started.
  DROVER_TRY(outcome, decide(state, event, now, Planning::kNone));
  if (broken_invariant(state, outcome)) return Failure(*broken);
  outcome.broken = std::move(broken);
  return outcome;
}

std::vector<std::string> waiting_reasons(const State& state, const TaskRecord& record) {
  if (auto why = why_held(state, record)) return {std::move(*why)};
  std::vector<std::string> clauses;
  const auto& job = job_id(record.task);
  if (state.positions)
    if (const auto found = state.positions->reasons.find(job); found != state.positions->reasons.end())
      clauses = placement::describe(found->second);
  if (!clauses.empty()) return clauses;
  if (is_behind(state, record))
    return {fmt::format("it stands behind {} others of '{}' in the queue '{}'", kPlannedOfUser,
                        record.task.owner_name, record.task.queue)};
  if (const auto& array = record.task.batch.array; array && array->at_once > 0)
    return {fmt::format("no more than {} of its array run at once", array->at_once)};
  if (record.asked) {
    const auto said = state.said.find(record.task.id);
    return {said == state.said.end() ? "the cluster was asked for a place, and has not answered"
                                     : said->second};
  }
  // Its gang is being put back, member by member; or nothing has been planned yet.
  return {record.task.gang ? "it waits for the other members of its gang" : "it is about to start"};
}

std::optional<TimePoint> next_deadline(const State& state, Moment now) {
  auto next = next_attempt(state);
  if (const auto deadline = next_framework_deadline(state); deadline && (!next || *deadline < *next))
    next = deadline;
  if (const auto deadline = next_executor_deadline(state); deadline && (!next || *deadline < *next))
    next = deadline;
  if (const auto release = next_release(state, now); release && (!next || *release < *next)) next = release;
  if (auto due = next_due(state)) {
    *due += now.steady - now.wall;
    next = std::min(next.value_or(*due), *due);
  }
  for (const auto& id : state.active)
    if (const auto deadline = deadline_of(state.tasks.at(id)); deadline && (!next || *deadline < *next))
      next = deadline;
  return next;
}

}  // namespace drover::control

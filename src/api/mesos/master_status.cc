// What frameworks are told of their tasks.

#include <nlohmann/json.hpp>
#include <set>

#include "api/mesos/call.h"
#include "api/mesos/master.h"
#include "api/mesos/protobuf_json.h"
#include "api/mesos/stream.h"
#include "api/mesos/task_info.h"
#include "api/mesos/uuid.h"
#include "api/mesos/values.h"
#include "control/executors.h"
#include "control/frameworks.h"

namespace drover::api::mesos {
namespace {

/// Who says so: the machine when the container never came to run or made room, else what ran it.
v1::TaskStatus::Source source_of(const control::StatusUpdate& update) {
  const auto& reason = update.reason;
  const bool by_agent = reason == "REASON_CONTAINER_LAUNCH_FAILED" ||
                        reason == "REASON_EXECUTOR_TERMINATED" || reason == "REASON_CONTAINER_PREEMPTED";
  return by_agent ? v1::TaskStatus::SOURCE_AGENT : v1::TaskStatus::SOURCE_EXECUTOR;
}

void set_reason(v1::TaskStatus& status, const std::string& name) {
  v1::TaskStatus::Reason reason{};
  if (!name.empty() && v1::TaskStatus::Reason_Parse(name, &reason)) status.set_reason(reason);
}

/// Also without a result, when there is none yet.
void set_check_status(v1::TaskStatus& status, const control::FrameworkTask& task, std::optional<int> found) {
  if (!task.check) return;
  auto& told = *status.mutable_check_status();
  switch (task.check->kind) {
    case workload::CheckKind::kCommand:
      told.set_type(v1::CheckInfo::COMMAND);
      told.mutable_command();
      if (found) told.mutable_command()->set_exit_code(*found);
      break;
    case workload::CheckKind::kTcp:
      told.set_type(v1::CheckInfo::TCP);
      told.mutable_tcp();
      if (found) told.mutable_tcp()->set_succeeded(*found != 0);
      break;
    default:
      told.set_type(v1::CheckInfo::HTTP);
      told.mutable_http();
      if (found) told.mutable_http()->set_status_code(static_cast<std::uint32_t>(*found));
  }
}

/// As wait(2) gives it.
int wait_status(int exit_status) {
  constexpr int kOfSignals = 128;
  return exit_status > kOfSignals ? exit_status - kOfSignals : exit_status << 8;
}

/// What an executor said, or what follows from the task.
v1::TaskStatus status_of(const control::FrameworkTask& task, const control::StatusUpdate& update) {
  v1::TaskStatus status;
  if (!update.status.empty()) {
    (void)from_json(nlohmann::json::parse(update.status, nullptr, false), status);
    return status;
  }
  status.set_state(state_named(update.state));
  if (!update.message.empty()) status.set_message(update.message);
  status.set_source(task.within ? v1::TaskStatus::SOURCE_AGENT : source_of(update));
  set_reason(status, update.reason);
  if (update.healthy) status.set_healthy(*update.healthy);
  set_check_status(status, task, update.check_status);
  return status;
}

}  // namespace

void Master::send_status(Subscriber& subscriber, const v1::TaskStatus& status) {
  Event event;
  event.set_type(Event::UPDATE);
  *event.mutable_update()->mutable_status() = status;
  subscriber.stream->send(event);
}

/// Sends the oldest update that is not acknowledged, unless it was sent a short while ago.
void Master::send_next_update(const std::string& framework, const std::string& task_id) {
  const auto found = subscribers_.find(framework);
  if (found == subscribers_.end()) return;
  auto& subscriber = found->second;
  const auto& rows = daemon_.state().framework_tasks;
  const auto row = rows.find(control::framework_task_key(framework, task_id));
  if (row == rows.end() || row->second.updates.empty()) {
    subscriber.unacknowledged.erase(task_id);
    return;
  }
  const auto& update = row->second.updates.front();
  auto& told = subscriber.unacknowledged[task_id];
  const auto now = Clock::now();
  if (told.uuid != update.uuid) told = {update.uuid};
  if (told.again > now) return;
  told.again = now + told.pauses.next();

  auto status = status_of(row->second, update);
  status.mutable_task_id()->set_value(task_id);
  status.mutable_agent_id()->set_value(agent_of(row->second));
  status.mutable_executor_id()->set_value(row->second.executor_id);
  status.set_timestamp(seconds_of(update.at));
  status.set_uuid(uuid_bytes(update.uuid).value_or(""));
  auto& container = *status.mutable_container_status();
  container.mutable_container_id()->set_value(row->second.id);
  const auto* record = daemon_.state().find(row->second.id);
  if (container.network_infos().empty())
    container.add_network_infos()->add_ip_addresses()->set_ip_address(
        record == nullptr ? options_.ip : control::address_of(*record, options_.ip));
  send_status(subscriber, status);
}

void Master::send_all_updates(const std::string& framework) {
  for (const auto& [key, task] : daemon_.state().framework_tasks)
    if (task.framework == framework) send_next_update(framework, task.task_id);
}

std::string Master::agent_of(const control::FrameworkTask& task) const {
  const auto* record = daemon_.state().find(task.id);
  return record == nullptr ? agent_id() : control::agent_of(daemon_.state(), *record);
}

void Master::send_passing(const std::string& framework, const Passing& passing) {
  const auto found = subscribers_.find(framework);
  if (found == subscribers_.end()) return;
  v1::TaskStatus status;
  status.mutable_task_id()->set_value(passing.task_id);
  status.set_state(state_named(passing.state));
  status.set_message(passing.message);
  status.set_source(v1::TaskStatus::SOURCE_MASTER);
  set_reason(status, passing.reason);
  if (passing.task != nullptr) set_check_status(status, *passing.task, passing.task->check_status);
  if (!passing.agent.empty()) status.mutable_agent_id()->set_value(passing.agent);
  status.set_timestamp(seconds_of(daemon_.now()));
  send_status(found->second, status);
}

/// A group's executor has nothing left to run, or one of the framework's own has ended. As in Mesos nobody is
/// told of those of single commands.
void Master::send_failure(const control::notice::ExecutorEnded& ended) {
  const auto found = subscribers_.find(ended.framework);
  if (found == subscribers_.end()) return;
  Event event;
  event.set_type(Event::FAILURE);
  event.mutable_failure()->mutable_agent_id()->set_value(control::agent_id(id(), ended.host));
  event.mutable_failure()->mutable_executor_id()->set_value(ended.executor);
  event.mutable_failure()->set_status(wait_status(ended.exit_status));
  found->second.stream->send(event);
}

void Master::forward_message(const control::ExecutorRecord& executor, const std::string& data) {
  const auto found = subscribers_.find(executor.framework);
  if (found == subscribers_.end()) return;
  Event event;
  event.set_type(Event::MESSAGE);
  event.mutable_message()->mutable_agent_id()->set_value(control::agent_id(id(), executor.host));
  event.mutable_message()->mutable_executor_id()->set_value(executor.executor_id);
  event.mutable_message()->set_data(data);
  found->second.stream->send(event);
}

void Master::reconcile_one(const std::string& framework, const std::string& task_id,
                           const std::string& agent) {
  const auto& state = daemon_.state();
  const auto& record = state.frameworks.at(framework);
  const auto row = state.framework_tasks.find(control::framework_task_key(framework, task_id));
  const auto* task = row == state.framework_tasks.end() ? nullptr : state.find(row->second.id);
  if (task != nullptr)
    return send_passing(
        framework, {task_id, control::agent_of(state, *task), control::mesos_state(row->second, task, record),
                    "REASON_RECONCILIATION", "Reconciliation: Latest task state", &row->second});
  const bool known = control::is_agent(state, agent);
  const auto* lost = !record.knows_partitions ? "TASK_LOST" : known ? "TASK_GONE" : "TASK_UNKNOWN";
  // Of what is nowhere known nobody can say where it is.
  const bool tell_where = known || !record.knows_partitions;
  send_passing(framework,
               {task_id,
                !tell_where ? ""
                : known     ? agent
                            : agent_id(),
                lost, "REASON_RECONCILIATION",
                known ? "Reconciliation: Task is unknown to the agent" : "Reconciliation: Task is unknown"});
}

void Master::reconcile(const std::string& framework, const Call& call) {
  for (const auto& task : call.reconcile().tasks())
    reconcile_one(framework, task.task_id().value(), task.agent_id().value());
  if (!call.reconcile().tasks().empty()) return;
  for (const auto& [key, task] : daemon_.state().framework_tasks)
    if (task.framework == framework) reconcile_one(framework, task.task_id, agent_of(task));
}

void Master::acknowledge(const std::string& framework, const Call& call) {
  (void)daemon_.change(control::event::UpdateAcknowledged{framework, call.acknowledge().task_id().value(),
                                                          uuid_text(call.acknowledge().uuid())});
}

void Master::kill(const std::string& framework, const Call& call) {
  const auto& kill = call.kill();
  const auto& task_id = kill.task_id().value();
  const auto& rows = daemon_.state().framework_tasks;
  const auto row = rows.find(control::framework_task_key(framework, task_id));
  if (row == rows.end()) {
    reconcile_one(framework, task_id, kill.agent_id().value());
    return;
  }
  if (kill.has_agent_id() && kill.agent_id().value() != agent_of(row->second)) return;
  const auto id = row->second.id;
  const auto grace = grace_of(kill.kill_policy());
  if (row->second.within) {
    (void)daemon_.change(control::event::ExecutorTaskKilled{framework, task_id, grace});
    return;
  }
  const bool at_once = grace && grace->count() == 0;
  const auto* task = daemon_.state().find(id);
  const bool sooner = grace && task != nullptr && *grace < task->task.grace;
  (void)daemon_.change(control::event::StopRequested{id, at_once});
  if (sooner && !at_once) force_later(id, *grace);
}

/// Its shim only knows the task's own grace, and would wait for longer.
void Master::force_later(const std::string& id, std::chrono::milliseconds grace) {
  escalations_.erase(id);
  auto& timer = escalations_.emplace(id, context_).first->second;
  timer.expires_after(grace);
  timer.async_wait([this, id, alive = alive_](const auto& error) {
    if (error || !*alive) return;
    escalations_.erase(id);
    daemon_.happened(control::event::StopRequested{id, true});
  });
}

void Master::shut_down(const std::string& framework, const Call::Shutdown& wanted) {
  const auto& state = daemon_.state();
  const auto& executor = wanted.executor_id().value();
  const auto& agent = wanted.agent_id().value();
  const bool is_of_one = !control::host_of_agent(id(), agent).empty();
  std::set<std::string> ids;
  if (const auto* own = control::executor_named(state, framework, executor, agent)) ids.insert(own->id);
  for (const auto& [key, task] : state.framework_tasks)
    if (task.framework == framework && task.executor_id == executor &&
        (!is_of_one || agent_of(task) == agent))
      ids.insert(task.id);
  for (const auto& id : ids) (void)daemon_.change(control::event::StopRequested{id, false});
}

}  // namespace drover::api::mesos

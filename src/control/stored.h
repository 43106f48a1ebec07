#pragma once

// The stored JSON of the state's tables. For `.cc` files.

#include "control/executor_record.h"
#include "control/framework_record.h"
#include "control/schedule_record.h"
#include "control/service_record.h"
#include "workload/stored.h"

namespace drover::control {

inline void to_json(nlohmann::json& value, TaskState state) {
  value = to_string(state);
}
inline void from_json(const nlohmann::json& value, TaskState& state) {
  state = parse_task_state(value.get<std::string>()).value_or(TaskState::kQueued);
}
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(ServiceFailure, task_id, state, message, at, version)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(ServiceRecord, target, removed, applied, versions, backoff,
                                                not_before, last_failure)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(GroupRecord, dependencies, version, owner)
NLOHMANN_JSON_SERIALIZE_ENUM(DeploymentActionKind, {{DeploymentActionKind::kStart, "start"},
                                                    {DeploymentActionKind::kScale, "scale"},
                                                    {DeploymentActionKind::kRestart, "restart"},
                                                    {DeploymentActionKind::kStop, "stop"}})
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(DeploymentAction, kind, service)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Deployment, id, version, steps, step, begun, before, owner)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(FrameworkRecord, name, user, owner, owner_name, info,
                                                failover_timeout, knows_gpus, knows_partitions, knows_killing,
                                                registered_at, reregistered_at, disconnected_at, remove_at,
                                                removed_at)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(StatusUpdate, uuid, state, message, reason, at, healthy,
                                                check_status, status)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(PortRange, begin, end)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(ResourceAmounts, gpus, milli_cpus, memory_bytes, disk_bytes,
                                                ports)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(ExecutorRecord, framework, executor_id, id, info, given,
                                                launches, registered, due, timed_out, host)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(ExecutorPart, launch, in_group, info, amounts, kill,
                                                kill_grace, heard)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(FrameworkTask, framework, task_id, id, name, executor_id,
                                                told, updates, update_count, health_check, check,
                                                check_status, within)
NLOHMANN_JSON_SERIALIZE_ENUM(RunOutcome, {{RunOutcome::kSucceeded, "succeeded"},
                                          {RunOutcome::kFailed, "failed"},
                                          {RunOutcome::kKilled, "killed"},
                                          {RunOutcome::kLost, "lost"},
                                          {RunOutcome::kSkipped, "skipped"}})
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(ScheduleRun, task_id, origin_id, attempt, due, arguments)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(ScheduleRetry, not_before, attempt, due, arguments)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(ScheduleEntry, outcome, run, count, started_at, at, message)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(ScheduleRecord, schedule, next, due, reckoned_until, active,
                                                retries, succeeded, successes, errors, errors_since_success,
                                                last_success, last_error, history, durations, elements)

}  // namespace drover::control

#include "engine/check_targets.h"

#include <string>

#include "control/instances.h"

namespace drover::engine {
namespace {

constexpr const char* kReadiness = "ready";

std::string address_of(const control::TaskRecord& record, bool ipv6 = false) {
  return !record.address.empty() ? record.address : ipv6 ? "::1" : "127.0.0.1";
}

int port_of(const control::TaskRecord& record, int index) {
  const auto at = static_cast<std::size_t>(index);
  return index >= 0 && at < record.ports.size() ? record.ports[at] : 0;
}

/// Of one health check.
void add_health_check(std::vector<CheckTarget>& targets, const control::TaskRecord& record,
                      const workload::HealthCheck& check, std::size_t index) {
  CheckTarget target;
  target.task_id = record.task.id;
  target.owner = record.task.owner;
  target.started_at = record.started_at.value_or(TimePoint{});
  target.check = std::to_string(index);
  target.host = address_of(record, check.ipv6);
  target.port = check.port != 0 ? check.port : port_of(record, check.port_index);
  target.what = check;
  targets.push_back(std::move(target));
}

void add_targets(std::vector<CheckTarget>& targets, const control::State& state,
                 const control::TaskRecord& record, const workload::Service& service) {
  for (std::size_t i = 0; i < service.health_checks.size(); ++i)
    add_health_check(targets, record, service.health_checks[i], i);
  if (!service.readiness) return;
  const auto health = state.health.find(record.task.id);
  if (health != state.health.end() && health->second.ready) return;
  CheckTarget target;
  target.task_id = record.task.id;
  target.owner = record.task.owner;
  target.started_at = record.started_at.value_or(TimePoint{});
  target.check = kReadiness;
  target.host = address_of(record);
  target.port = port_of(record, service.readiness->port_index);
  target.what = *service.readiness;
  targets.push_back(target);
}

}  // namespace

std::vector<CheckTarget> targets_of(const control::State& state, const std::string& task) {
  std::vector<CheckTarget> targets;
  const auto* record = state.find(task);
  if (record == nullptr || record->state != control::TaskState::kRunning) return targets;
  const auto& origin = record->task.origin;
  if (origin.kind == workload::OriginKind::kFramework) {
    const auto row = state.framework_tasks.find(control::framework_task_key(origin.name, origin.task_id));
    if (row == state.framework_tasks.end()) return targets;
    if (row->second.health_check)
      add_health_check(targets, *record, *row->second.health_check, control::kHealthCheck);
    if (row->second.check) add_health_check(targets, *record, *row->second.check, control::kGeneralCheck);
  }
  if (origin.kind != workload::OriginKind::kService) return targets;
  const auto service = state.services.find(origin.name);
  if (service == state.services.end()) return targets;
  if (const auto* definition = control::definition_of(service->second, *record))
    add_targets(targets, state, *record, *definition);
  return targets;
}

std::set<std::string> tasks_to_check(const control::State& state, const control::Outcome& outcome) {
  std::set<std::string> tasks(outcome.removed.begin(), outcome.removed.end());
  for (const auto& record : outcome.changed)
    if (record.task.origin.kind == workload::OriginKind::kService ||
        record.task.origin.kind == workload::OriginKind::kFramework)
      tasks.insert(record.task.id);
  for (const auto& [task, health] : outcome.health)
    if (health.ready) tasks.insert(task);
  for (const auto& [id, service] : outcome.services)  // a definition may have been forgotten
    if (const auto found = state.by_origin.find({workload::OriginKind::kService, id});
        found != state.by_origin.end())
      tasks.insert(found->second.begin(), found->second.end());
  return tasks;
}

control::CheckResult result_of(const CheckResult& result, TimePoint at) {
  control::CheckResult told{
      .task = result.task_id, .passed = result.passed, .why = result.why, .status = result.status, .at = at};
  told.check = result.check == kReadiness ? -1 : std::stoi(result.check);
  if (const auto& response = result.response)
    told.answer = control::ReadinessAnswer{response->status, response->content_type, response->body};
  return told;
}

}  // namespace drover::engine

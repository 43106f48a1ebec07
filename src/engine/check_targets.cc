#include "engine/check_targets.h"

#include <algorithm>
#include <string>

#include "control/instances.h"

namespace drover::engine {
namespace {

constexpr const char* kReadiness = "ready";

int port_of(const control::TaskRecord& record, int index) {
  const auto at = static_cast<std::size_t>(index);
  return index >= 0 && at < record.ports.size() ? record.ports[at] : 0;
}

/// Of one health check.
void add_health_check(std::vector<CheckTarget>& targets, const control::TaskRecord& record,
                      const workload::HealthCheck& check, std::size_t index) {
  CheckTarget target;
  target.task_id = record.task.id;
  target.started_at = record.started_at.value_or(TimePoint{});
  target.check = std::to_string(index);
  target.host = check.ipv6 ? "::1" : "127.0.0.1";
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
  target.started_at = record.started_at.value_or(TimePoint{});
  target.check = kReadiness;
  target.host = "127.0.0.1";
  target.port = port_of(record, service.readiness->port_index);
  target.what = *service.readiness;
  targets.push_back(target);
}

}  // namespace

std::vector<CheckTarget> targets_of(const control::State& state) {
  std::vector<CheckTarget> targets;
  for (const auto& [id, service] : state.services) {
    const auto tasks = state.by_origin.find({workload::OriginKind::kService, id});
    if (tasks == state.by_origin.end()) continue;
    for (const auto& task : tasks->second) {
      const auto& record = state.tasks.at(task);
      if (record.state != control::TaskState::kRunning) continue;
      if (const auto* definition = control::definition_of(service, record))
        add_targets(targets, state, record, *definition);
    }
  }
  for (const auto& [key, task] : state.framework_tasks) {
    const auto* record = state.find(task.id);
    if (task.health_check && record != nullptr && record->state == control::TaskState::kRunning)
      add_health_check(targets, *record, *task.health_check, 0);
  }
  return targets;
}

bool changes_targets(const control::Outcome& outcome) {
  const auto is_instance = [](const control::TaskRecord& record) {
    const auto kind = record.task.origin.kind;
    return kind == workload::OriginKind::kService || kind == workload::OriginKind::kFramework;
  };
  const auto is_ready = [](const auto& entry) { return entry.second.ready; };
  return !outcome.services.empty() || std::ranges::any_of(outcome.changed, is_instance) ||
         std::ranges::any_of(outcome.health, is_ready);
}

control::CheckResult result_of(const CheckResult& result, TimePoint at) {
  control::CheckResult told{.task = result.task_id, .passed = result.passed, .why = result.why, .at = at};
  told.check = result.check == kReadiness ? -1 : std::stoi(result.check);
  if (const auto& response = result.response)
    told.answer = control::ReadinessAnswer{response->status, response->content_type, response->body};
  return told;
}

}  // namespace drover::engine

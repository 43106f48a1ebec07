#include "control/superseding.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "control/instances.h"

namespace drover::control {
namespace {

/// The services that deployments are at work on.
std::set<std::string_view> under_way(const State& state) {
  std::set<std::string_view> services;
  for (const auto& [id, deployment] : state.deployments)
    for (const auto& [service, before] : deployment.before) services.insert(service);
  return services;
}

bool has_come_up(const Draft& draft, const ServiceRecord& record) {
  const auto since = format_time(record.target.last_config_change_at);
  return std::ranges::any_of(
      draft.tasks_of({workload::OriginKind::kService, record.target.id}), [&](const TaskRecord* task) {
        if (task->task.origin.version < since || !is_up(draft, record, *task)) return false;
        const bool none_failed = record.backoff == std::chrono::milliseconds(0);
        return none_failed || draft.steady() - steady_start(*task).value_or(draft.steady()) >= kSettled;
      });
}

bool is_as_wanted(const ServiceRecord& record, const workload::Service& wanted) {
  return same_configuration(record.target, wanted) && record.target.instances == wanted.instances &&
         record.target.dependencies == wanted.dependencies;
}

}  // namespace

bool may_supersede(const State& state, const event::ServicesChanged& change, Moment now) {
  const Draft draft(state, now);
  const auto locked = under_way(state);
  const auto may_change = [&](const std::string& id, const workload::Service* wanted) {
    if (!locked.contains(id)) return true;
    const auto* record = draft.services.find(id);
    if (record == nullptr || record->removed) return false;  // it is on its way out, which has an end
    if (wanted != nullptr && !change.restart && is_as_wanted(*record, *wanted)) return true;
    return !has_come_up(draft, *record);
  };
  return std::ranges::all_of(change.removed, [&](const auto& id) { return may_change(id, nullptr); }) &&
         std::ranges::all_of(change.put,
                             [&](const auto& service) { return may_change(service.id, &service); });
}

}  // namespace drover::control

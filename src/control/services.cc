#include "control/services.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/ids.h"
#include "control/constraints.h"
#include "control/deployments.h"
#include "control/instances.h"
#include "control/submission.h"

namespace drover::control {
namespace {

using workload::Service;

std::vector<std::string> ids_of(const event::ServicesChanged& event) {
  auto ids = event.removed;
  for (const auto& service : event.put) ids.push_back(service.id);
  return ids;
}

Failure no_such_service(const std::string& id) {
  return fail(ErrorKind::kNotFound, fmt::format("There is no service '{}'", id),
              "'drover app list' shows those there are");
}

Status check(const Draft& draft, const event::ServicesChanged& event) {
  for (const auto& id : event.removed)
    if (const auto* record = draft.services.find(id); record == nullptr || record->removed)
      return no_such_service(id);
  for (const auto& service : event.put) {
    if (auto allowed = check_rights(draft, service.task); !allowed)
      return Failure(context(allowed.error(), fmt::format("The service '{}'", service.id)));
    if (auto valid = placement::validate(service.task.resources); !valid)
      return Failure(context(valid.error(), fmt::format("The service '{}'", service.id)));
    if (auto valid = check_constraints(service); !valid)
      return Failure(context(valid.error(), fmt::format("The service '{}'", service.id)));
  }
  return {};
}

/// Gives up the deployments that touch the services; an error when they are not to be. Returns the services
/// and all others that those were about: the next deployment goes on with what is not yet as it is to be.
Result<std::set<std::string>> unlock(Draft& draft, const std::vector<std::string>& services, bool force) {
  std::vector<Deployment> locking;
  draft.deployments.each([&](const std::string&, const Deployment& deployment) {
    if (std::ranges::any_of(services, [&](const auto& id) { return deployment.touches(id); }))
      locking.push_back(deployment);
  });
  if (!locking.empty() && !force)
    return fail(
        ErrorKind::kConflict,
        fmt::format("The deployment '{}' is still at work on one of these services", locking.front().id),
        "wait for its end, or force the change");
  std::set<std::string> concerned(services.begin(), services.end());
  for (const auto& deployment : locking) {
    for (const auto& [id, before] : deployment.before)
      if (draft.services.find(id) != nullptr) concerned.insert(id);
    draft.deployments.remove(deployment.id);
    draft.notify(notice::DeploymentEnded{deployment, false});
  }
  return concerned;
}

/// Later than every version that these services have had.
TimePoint next_version(const Draft& draft, const std::vector<std::string>& services) {
  auto version = draft.now();
  for (const auto& id : services)
    if (const auto* record = draft.services.find(id))
      version = std::max(version, record->target.version + std::chrono::milliseconds(1));
  return version;
}

void set_target(Draft& draft, const Service& wanted, TimePoint version, bool restart) {
  const auto* known = draft.services.find(wanted.id);
  auto target = wanted;
  target.version = version;
  target.last_scaling_at = target.last_config_change_at = version;
  if (known == nullptr) {
    draft.services.put(wanted.id, {}).target = std::move(target);
    return;
  }
  auto& record = draft.services.change(wanted.id);
  if (!restart && same_configuration(record.target, wanted))
    target.last_config_change_at = record.target.last_config_change_at;
  if (record.target.instances == wanted.instances) target.last_scaling_at = record.target.last_scaling_at;
  record.versions.insert(record.versions.begin(), record.target);
  if (record.versions.size() > kMostVersions) record.versions.pop_back();
  if (target.last_config_change_at == version) {
    // What is new has not failed yet.
    record.backoff = {};
    record.not_before = {};
  }
  record.target = std::move(target);
  record.removed = false;
}

/// What the service is to be now; none when it is not to be.
std::optional<Service> target_of(const Draft& draft, const std::string& id) {
  const auto* record = draft.services.find(id);
  return record == nullptr || record->removed ? std::nullopt : std::optional(record->target);
}

std::map<std::string, std::optional<Service>> targets_of(const Draft& draft,
                                                         const std::vector<std::string>& services) {
  std::map<std::string, std::optional<Service>> targets;
  for (const auto& id : services) targets[id] = target_of(draft, id);
  return targets;
}

/// From where the services are to their targets; `before` are the targets of those that were just given
/// another.
Status deploy(Draft& draft, const std::set<std::string>& services,
              std::map<std::string, std::optional<Service>> before, TimePoint version, uid_t owner) {
  Deployment deployment;
  DROVER_TRY(deployment.steps, steps_for(draft, services));
  for (const auto& step : deployment.steps)
    for (const auto& action : step)
      if (!before.contains(action.service)) before.emplace(action.service, target_of(draft, action.service));
  const auto number = std::stoull(draft.unused_id(), nullptr, 16);
  const auto at = static_cast<std::uint64_t>(version.time_since_epoch().count());
  // Two that start no task can come in the same millisecond.
  for (std::uint64_t salt = 3; deployment.id.empty() || draft.deployments.find(deployment.id) != nullptr;
       ++salt)
    deployment.id = uuid_of(mix(number, salt), mix(number, at));
  deployment.version = version;
  deployment.before = std::move(before);
  deployment.owner = owner;
  draft.made(deployment.id);
  draft.deployments.put(deployment.id, deployment);
  return {};
}

}  // namespace

Status change_services(Draft& draft, const event::ServicesChanged& event) {
  const auto services = ids_of(event);
  DROVER_CHECK_OK(check(draft, event));
  DROVER_TRY(const auto concerned, unlock(draft, services, event.force));
  const auto version = next_version(draft, services);
  auto before = targets_of(draft, services);
  for (const auto& service : event.put) set_target(draft, service, version, event.restart);
  for (const auto& id : event.removed) draft.services.change(id).removed = true;
  std::vector<std::string> groups;
  for (const auto& [id, group] : event.groups) {
    groups.push_back(id);
    if (group)
      draft.groups.put(id, *group).version = version;
    else
      draft.groups.remove(id);
  }
  DROVER_CHECK_OK(deploy(draft, concerned, std::move(before), version, event.owner));
  draft.notify(notice::DefinitionsChanged{services, std::move(groups), version});
  return {};
}

Status kill_instances(Draft& draft, const event::InstancesKilled& event) {
  std::map<std::string, int> lost;  // by service
  for (const auto& id : event.ids) {
    const auto* task = draft.find(id);
    if (task == nullptr || task->task.origin.kind != workload::OriginKind::kService || is_final(task->state))
      return fail(ErrorKind::kNotFound,
                  fmt::format("There is no instance '{}' of a service that has not ended", id));
    if (task->state != TaskState::kStopping || task->preempted) ++lost[task->task.origin.name];
  }
  std::vector<std::string> services;
  for (const auto& [id, count] : lost)
    if (const auto* record = draft.services.find(id); record != nullptr && !record->removed)
      services.push_back(id);
  if (event.scale) {
    DROVER_TRY(const auto concerned, unlock(draft, services, event.force));
    const auto version = next_version(draft, services);
    auto before = targets_of(draft, services);
    for (const auto& id : services) {
      auto target = draft.services.find(id)->target;
      target.instances = std::max(0, target.instances - lost[id]);
      set_target(draft, target, version, false);
    }
    DROVER_CHECK_OK(deploy(draft, concerned, std::move(before), version, event.owner));
    draft.notify(notice::DefinitionsChanged{services, {}, version});
  }
  for (const auto& id : event.ids) end_instance(draft, id, "killed on request");
  return {};
}

Status cancel_deployment(Draft& draft, const event::DeploymentCancelled& event) {
  const auto* found = draft.deployments.find(event.id);
  if (found == nullptr)
    return fail(ErrorKind::kNotFound, fmt::format("There is no deployment '{}' under way", event.id));
  const auto deployment = *found;
  if (event.revert) {
    event::ServicesChanged back;
    back.force = true;
    back.owner = event.owner;
    for (const auto& [id, service] : deployment.before) {
      const auto* record = draft.services.find(id);
      if (service == target_of(draft, id)) continue;  // it was only under way
      if (service)
        back.put.push_back(*service);
      else if (record != nullptr && !record->removed)
        back.removed.push_back(id);
    }
    return change_services(draft, back);
  }
  draft.deployments.remove(event.id);
  draft.notify(notice::DeploymentEnded{deployment, false});
  return {};
}

Status reset_delay(Draft& draft, const std::string& service) {
  if (draft.services.find(service) == nullptr) return no_such_service(service);
  auto& record = draft.services.change(service);
  record.backoff = {};
  record.not_before = {};
  return {};
}

void advance_services(Draft& draft, bool all) {
  note_failures(draft);
  std::set<std::string> due;
  for (const auto& [kind, name] : draft.touched())
    if (kind == workload::OriginKind::kService) due.insert(name);
  for (const auto& [id, record] : draft.services.changes()) due.insert(id);
  if (all) draft.services.each([&](const std::string& id, const ServiceRecord&) { due.insert(id); });
  // Each round ends, begins or goes through a step, so there is an end.
  while (true) {
    for (const auto& id : due) settle_instances(draft, id);
    auto changed = advance_deployments(draft);
    if (changed.empty()) return;
    due = std::move(changed);
  }
}

std::optional<TimePoint> next_attempt(const State& state) {
  std::optional<TimePoint> next;
  for (const auto& [id, record] : state.services)
    if (record.not_before != TimePoint{} && (!next || record.not_before < *next)) next = record.not_before;
  return next;
}

}  // namespace drover::control

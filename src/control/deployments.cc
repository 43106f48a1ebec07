#include "control/deployments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "control/instances.h"

namespace drover::control {
namespace {

using Dependencies = std::map<std::string, std::vector<std::string>>;

bool is_in_group(const std::string& id, const std::string& group) {
  return group == "/" || (id.size() > group.size() && id.starts_with(group) && id[group.size()] == '/');
}

/// Of the ids, those that `wanted` names itself or as a group.
std::set<std::string> meant_by(const Dependencies& all, const std::string& id,
                               const std::vector<std::string>& wanted) {
  std::set<std::string> meant;
  for (const auto& name : wanted)
    for (const auto& [other, ignored] : all)
      if (other != id && (other == name || is_in_group(other, name))) meant.insert(other);
  return meant;
}

/// What the service still lacks to be as it is wanted.
std::optional<DeploymentActionKind> change_of(const Draft& draft, const ServiceRecord& record) {
  if (!same_configuration(record.applied, record.target) ||
      record.applied.last_config_change_at != record.target.last_config_change_at ||
      !instances_of(draft, record).old.empty())
    return DeploymentActionKind::kRestart;
  if (record.applied.instances != record.target.instances) return DeploymentActionKind::kScale;
  return std::nullopt;
}

void begin(Draft& draft, const DeploymentAction& action) {
  if (draft.services.find(action.service) == nullptr) return;  // it is gone already
  auto& record = draft.services.change(action.service);
  if (action.kind == DeploymentActionKind::kStop) {
    record.applied.instances = 0;
    return;
  }
  record.applied = record.target;
  if (action.kind == DeploymentActionKind::kStart) record.applied.instances = 0;
}

bool is_done(const Draft& draft, const DeploymentAction& action) {
  const auto* record = draft.services.find(action.service);
  if (record == nullptr) return true;
  const auto instances = instances_of(draft, *record);
  switch (action.kind) {
    case DeploymentActionKind::kStart:
      return true;
    case DeploymentActionKind::kStop:
      return false;  // it goes with its last instance
    case DeploymentActionKind::kRestart:
      if (!instances.old.empty()) return false;
      [[fallthrough]];
    case DeploymentActionKind::kScale:
      // Who goes on after it wants what those have that go.
      return instances.stopping.empty() && static_cast<int>(instances.live()) == record->applied.instances &&
             std::ranges::all_of(instances.current,
                                 [&](const auto* task) { return is_up(draft, *record, *task); });
  }
  return true;
}

}  // namespace

Result<std::vector<std::vector<std::string>>> levels_of(const Dependencies& dependencies) {
  std::map<std::string, std::set<std::string>> waits_for;
  for (const auto& [id, wanted] : dependencies) waits_for[id] = meant_by(dependencies, id, wanted);
  std::vector<std::vector<std::string>> levels;
  while (!waits_for.empty()) {
    std::vector<std::string> level;
    for (const auto& [id, others] : waits_for)
      if (others.empty()) level.push_back(id);
    if (level.empty()) {
      std::vector<std::string> left;
      for (const auto& [id, others] : waits_for) left.push_back(id);
      return fail(ErrorKind::kInvalid,
                  fmt::format("These services depend on each other in a circle: {}", fmt::join(left, ", ")),
                  "take one of their dependencies away", "/dependencies");
    }
    for (const auto& id : level) waits_for.erase(id);
    for (auto& [id, others] : waits_for)
      for (const auto& done : level) others.erase(done);
    levels.push_back(std::move(level));
  }
  return levels;
}

Result<std::vector<std::vector<DeploymentAction>>> steps_for(const Draft& draft,
                                                             const std::set<std::string>& services) {
  std::vector<DeploymentAction> stops, starts;
  std::map<std::string, DeploymentActionKind> changes;
  for (const auto& id : services) {
    const auto& record = *draft.services.find(id);
    if (record.removed) {
      stops.push_back({DeploymentActionKind::kStop, id});
      continue;
    }
    const bool is_new = record.applied.id.empty();
    if (is_new) starts.push_back({DeploymentActionKind::kStart, id});
    if (is_new && record.target.instances > 0)
      changes.emplace(id, DeploymentActionKind::kScale);
    else if (const auto change = is_new ? std::nullopt : change_of(draft, record))
      changes.emplace(id, *change);
  }
  Dependencies dependencies;
  draft.services.each([&](const std::string& id, const ServiceRecord& record) {
    if (!record.removed) dependencies.emplace(id, record.target.dependencies);
  });
  DROVER_TRY(const auto levels, levels_of(dependencies));
  std::vector<std::vector<DeploymentAction>> steps = {std::move(stops), std::move(starts)};
  for (const auto& level : levels) {
    auto& step = steps.emplace_back();
    for (const auto& id : level)
      if (const auto change = changes.find(id); change != changes.end()) step.push_back({change->second, id});
  }
  std::erase_if(steps, [](const auto& step) { return step.empty(); });
  return steps;
}

std::set<std::string> advance_deployments(Draft& draft) {
  std::set<std::string> changed;
  std::vector<std::string> ids;
  draft.deployments.each([&](const std::string& id, const Deployment&) { ids.push_back(id); });
  for (const auto& id : ids) {
    const auto* deployment = draft.deployments.find(id);
    if (deployment->begun) {
      const auto& actions = deployment->steps[deployment->step];
      if (!std::ranges::all_of(actions, [&](const auto& action) { return is_done(draft, action); })) continue;
      draft.notify(notice::DeploymentStepDone{*deployment});
      auto& next = draft.deployments.change(id);
      ++next.step;
      next.begun = false;
      deployment = &next;
    }
    if (deployment->step == deployment->steps.size()) {
      draft.notify(notice::DeploymentEnded{*deployment, true});
      draft.deployments.remove(id);
      continue;
    }
    draft.deployments.change(id).begun = true;
    deployment = draft.deployments.find(id);
    draft.notify(notice::DeploymentStep{*deployment});
    for (const auto& action : deployment->steps[deployment->step]) {
      begin(draft, action);
      changed.insert(action.service);
    }
  }
  return changed;
}

}  // namespace drover::control

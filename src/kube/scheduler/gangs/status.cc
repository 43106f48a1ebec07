#include "kube/scheduler/gangs/status.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "kube/scheduler/condition.h"
#include "kube/scheduler/fields.h"
#include "kube/scheduler/preemption_words.h"

namespace drover::kube::scheduler {
namespace {

using nlohmann::json;

Condition condition_of(const Resource& resource, GangOutcome outcome, const std::string& message) {
  const auto* const scheduled =
      resource.version == "v1alpha2" ? "PodGroupScheduled" : "PodGroupInitiallyScheduled";
  switch (outcome) {
    case GangOutcome::kScheduled:
      return {scheduled, true, "Scheduled", message};
    case GangOutcome::kUnschedulable:
      return {scheduled, false, "Unschedulable", message};
    case GangOutcome::kError:
      return {scheduled, false, "SchedulerError", message};
    case GangOutcome::kPreempted:
      break;
  }
  return {"DisruptionTarget", true, kPreempted, message};
}

}  // namespace

std::optional<json> pod_group_status(const Resource& resource, const json& pod_group, GangOutcome outcome,
                                     const std::string& message, TimePoint now) {
  const auto condition = condition_of(resource, outcome, message);
  FieldReader reader;
  const auto& there = reader.objects(reader.object(pod_group, "status"), "conditions");
  if (!condition.holds && std::ranges::any_of(there, [&](const json& other) {
        return reader.text(other, "type") == condition.type && reader.text(other, "status") == "True";
      }))
    return std::nullopt;
  auto changed = changed_condition(pod_group, condition, now);
  if (!changed) return std::nullopt;
  return json{{"status", {{"conditions", json::array({std::move(*changed)})}}}};
}

}  // namespace drover::kube::scheduler

#include "kube/events/node_condition.h"

#include <nlohmann/json.hpp>
#include <optional>

namespace drover::kube {
namespace {

using nlohmann::json;

std::optional<NodeCondition> find_condition(const json& node, const std::string& type) {
  const auto conditions = node.value("/status/conditions"_json_pointer, json::array());
  for (const auto& condition : conditions)
    if (text_at(condition, "/type") == type)
      return NodeCondition{type, text_at(condition, "/status"), text_at(condition, "/reason"),
                           text_at(condition, "/message")};
  return std::nullopt;
}

Status patch_conditions(Api& api, const std::string& node, const json& condition) {
  const auto patched = api.write({kNodes, "", node, "status"}, PatchType::kStrategic,
                                 {{"status", {{"conditions", json::array({condition})}}}});
  if (!patched) return Failure(patched.error());
  return {};
}

}  // namespace

Status set_node_condition(Api& api, const std::string& node, const NodeCondition& condition, TimePoint now) {
  DROVER_TRY(const auto there, api.get({kNodes, "", node}));
  const auto before = find_condition(there, condition.type);
  if (before == condition) return {};
  json written = {{"type", condition.type},
                  {"status", condition.status},
                  {"reason", condition.reason},
                  {"message", condition.message},
                  {"lastHeartbeatTime", format_time(now)}};
  if (!before || before->status != condition.status) written["lastTransitionTime"] = format_time(now);
  return patch_conditions(api, node, written);
}

Status remove_node_condition(Api& api, const std::string& node, const std::string& type) {
  DROVER_TRY(const auto there, api.get({kNodes, "", node}));
  if (!find_condition(there, type)) return {};
  return patch_conditions(api, node, {{"$patch", "delete"}, {"type", type}});
}

}  // namespace drover::kube

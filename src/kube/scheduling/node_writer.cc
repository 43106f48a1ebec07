#include "kube/scheduling/node_writer.h"

#include <nlohmann/json.hpp>

#include "base/decode.h"
#include "kube/scheduler/node_holds.h"

namespace drover::kube {
namespace {

using nlohmann::json;

constexpr int kMostNodeTries = 5;  // its kubelet and controllers write it too

Status hold_once(Api& api, const std::string& name, const std::string& scheduler, bool held) {
  const ObjectPath path{kNodes, "", name};
  DROVER_TRY(const auto node, api.get(path));
  auto taints = node.value(json::json_pointer("/spec/taints"), json::array());
  if (!taints.is_array()) taints = json::array();
  const auto removed = std::erase_if(taints.get_ref<json::array_t&>(), [&](const json& taint) {
    return text_at(taint, "/key") == scheduler::kHeldTaint && text_at(taint, "/value") == scheduler;
  });
  if (held == (removed > 0)) return {};
  if (held)
    taints.push_back({{"key", scheduler::kHeldTaint}, {"value", scheduler}, {"effect", "NoSchedule"}});
  return api.write(path, PatchType::kMerge,
                   {{"metadata", {{"resourceVersion", text_at(node, "/metadata/resourceVersion")}}},
                    {"spec", {{"taints", taints.empty() ? json() : taints}}}});
}

}  // namespace

Status hold_node(Api& api, const std::string& node, const std::string& scheduler, bool held) {
  Status done;
  for (int i = 0; i < kMostNodeTries; ++i) {
    done = hold_once(api, node, scheduler, held);
    if (done || done.error().kind != ErrorKind::kConflict) return done;
  }
  return done;
}

}  // namespace drover::kube

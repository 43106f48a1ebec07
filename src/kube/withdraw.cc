#include "kube/withdraw.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "kube/events/node_condition.h"
#include "kube/labels/apply.h"
#include "kube/sandboxes/driver.h"
#include "kube/sandboxes/names.h"
#include "kube/scheduler/node_holds.h"
#include "kube/scheduling/node_writer.h"

namespace drover::kube {
namespace {

using nlohmann::operator""_json_pointer;

constexpr std::string_view kOurConditions = "Drover";

std::set<std::string> texts_in(const nlohmann::json& object, const char* list, const char* field) {
  std::set<std::string> texts;
  for (const auto& entry : object.value(nlohmann::json::json_pointer(list), nlohmann::json::array()))
    texts.insert(text_at(entry, field));
  return texts;
}

Result<bool> withdraw_from(Api& api, const nlohmann::json& node) {
  const auto name = text_at(node, "/metadata/name");
  bool found = false;
  if (texts_in(node, "/metadata/managedFields", "/manager").contains(kLabelsManager)) {
    DROVER_CHECK_OK(apply_labels(api, name, {}));
    found = true;
  }
  if (node.value("/metadata/labels"_json_pointer, nlohmann::json::object()).contains(kSandboxLabel)) {
    DROVER_CHECK_OK(label_sandboxes(api, name, false));
    found = true;
  }
  for (const auto& type : texts_in(node, "/status/conditions", "/type")) {
    if (!type.starts_with(kOurConditions)) continue;
    DROVER_CHECK_OK(remove_node_condition(api, name, type));
    found = true;
  }
  for (const auto& taint : node.value("/spec/taints"_json_pointer, nlohmann::json::array()))
    if (text_at(taint, "/key") == scheduler::kHeldTaint) {
      DROVER_CHECK_OK(hold_node(api, name, text_at(taint, "/value"), false));
      found = true;
    }
  return found;
}

}  // namespace

Result<int> withdraw(Api& api) {
  DROVER_TRY(const auto nodes, api.list({kNodes}));
  int count = 0;
  for (const auto& node : nodes.items) {
    DROVER_TRY(const bool found, withdraw_from(api, *node));
    if (found) ++count;
  }
  return count;
}

}  // namespace drover::kube

#include "control/cordons.h"

#include <fmt/format.h>

namespace drover::control {
namespace {

std::string words_of(const placement::Rules& rules, std::string_view what) {
  const auto found = rules.cordons.find(std::string(what));
  if (found == rules.cordons.end()) return "";
  const auto& [by, reason] = found->second;
  return fmt::format("by {}{}{}", by, reason.empty() ? "" : ": ", reason);
}

}  // namespace

placement::Node with_cordons(placement::Node node, const placement::Rules& rules) {
  node.cordoned = words_of(rules, placement::kWholeMachine);
  for (auto& device : node.inventory.devices) {
    device.cordoned = words_of(rules, device.uuid);
    if (!device.cordoned.empty()) device.cordoned.insert(0, "cordoned ");
  }
  return node;
}

}  // namespace drover::control

#include "kube/report/node_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/shorten.h"
#include "kube/dra/attributes.h"
#include "kube/plugin/resources.h"

namespace drover::kube {
namespace {

constexpr std::size_t kLongestMessage = 2048;

NodeCondition condition(std::string_view type, std::string_view status, std::string_view reason,
                        const std::string& message) {
  return {std::string(type), std::string(status), std::string(reason), shortened(message, kLongestMessage)};
}

NodeCondition gpus_ready(const gpu::Inventory& inventory) {
  const auto& devices = inventory.devices;
  if (devices.empty())
    return condition(kGpusReady, "Unknown", "NoGpus",
                     inventory.problems.empty()
                         ? "no GPU is known on this node"
                         : "no GPU is known on this node: " + to_string(inventory.problems.front()));
  std::string unfit;
  std::size_t out = 0;
  for (const auto& device : devices) {
    if (device.unfit.empty()) continue;
    ++out;
    unfit += fmt::format("; GPU {} ({}): {}", device.index, device.uuid, device.unfit);
  }
  if (out == 0)
    return condition(kGpusReady, "True", "AllReady",
                     fmt::format("all of its {} GPUs can be given out", devices.size()));
  return condition(
      kGpusReady, "False", out == devices.size() ? "NoneReady" : "SomeNotReady",
      fmt::format("{} of {} GPUs {} given to nobody{}", out, devices.size(), out == 1 ? "is" : "are", unfit));
}

NodeCondition cdi_supported(const NodeState& state) {
  switch (state.cdi) {
    case CdiSupport::kYes:
      return condition(kCdiSupported, "True", "RuntimeDoesCdi",
                       "the container runtime does what CDI specifications say");
    case CdiSupport::kNo:
      return condition(kCdiSupported, "False", "RuntimeWithoutCdi", state.runtime);
    case CdiSupport::kUnknown:
      break;
  }
  return condition(kCdiSupported, "Unknown", "RuntimeDoesNotTell", state.runtime);
}

bool is_device_of(const ClaimUse& use, const gpu::Device& device, std::string_view driver,
                  std::string_view node) {
  return use.driver == driver && use.pool == node && use.device == dra::device_name(device);
}

}  // namespace

std::vector<NodeCondition> node_conditions(const NodeState& state) {
  std::vector<NodeCondition> conditions = {gpus_ready(state.inventory), cdi_supported(state)};
  if (!state.claims) return conditions;
  if (state.claims->empty())
    conditions.push_back(
        condition(kClaimsServed, "True", "Serving", "claims of this node's GPUs are served"));
  else
    conditions.push_back(condition(kClaimsServed, "False", "NotServing", *state.claims));
  return conditions;
}

std::vector<GpuEvent> events_of(const gpu::HealthChange& change, std::string_view gpu) {
  using gpu::ReasonKind;
  std::vector<GpuEvent> events;
  for (const auto& reason : change.opened) {
    const auto words = fmt::format("{}: {}", gpu, to_string(reason));
    if (reason.takes_out)
      events.push_back({{true, "GpuUnhealthy", words + "; nobody is given it until that is over"}});
    else
      events.push_back({{true, reason.kind == ReasonKind::kXid ? "GpuError" : "GpuWarning",
                         words + "; it is given out as before"},
                        reason.kind == ReasonKind::kXid});
  }
  if (change.fit && !change.was_fit)
    events.push_back({{false, "GpuHealthy", fmt::format("{} is given out again", gpu)}});
  return events;
}

std::vector<PodName> pods_with(const gpu::Device& device, const std::vector<ContainerUse>& containers,
                               std::string_view driver, std::string_view node) {
  std::set<PodName> pods;
  for (const auto& container : containers) {
    const bool limited = std::ranges::any_of(container.devices, [&](const PluginUse& use) {
      return std::ranges::any_of(use.device_ids,
                                 [&](const std::string& id) { return uuid_in(id) == device.uuid; });
    });
    const bool claimed = std::ranges::any_of(
        container.claims, [&](const ClaimUse& use) { return is_device_of(use, device, driver, node); });
    if (limited || claimed) pods.insert({container.pod_namespace, container.pod});
  }
  return {pods.begin(), pods.end()};
}

}  // namespace drover::kube

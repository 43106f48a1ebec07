#include "kube/report/node_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/shorten.h"

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
  std::string unhealthy;
  std::size_t out = 0;
  for (const auto& device : devices) {
    if (device.unhealthy.empty()) continue;
    ++out;
    unhealthy += fmt::format("; GPU {} ({}): {}", device.index, device.uuid, device.unhealthy);
  }
  if (out == 0)
    return condition(kGpusReady, "True", "AllReady",
                     fmt::format("all of its {} GPUs can be given out", devices.size()));
  return condition(kGpusReady, "False", out == devices.size() ? "NoneReady" : "SomeNotReady",
                   fmt::format("{} of {} GPUs {} given to nobody{}", out, devices.size(),
                               out == 1 ? "is" : "are", unhealthy));
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

/// Of the GPU, or of those MIG devices of it.
std::set<std::string> uuids_of(const std::string& gpu, const gpu::MigInstance& instance,
                               const std::map<std::string, gpu::MigGpu>& mig) {
  const auto cut = mig.find(gpu);
  if (cut == mig.end() || instance == gpu::MigInstance()) return {gpu};
  std::set<std::string> uuids;
  for (const auto& one : cut->second.instances)
    if (!one.uuid.empty() && instance.overlaps({one.gpu_instance, one.compute_instance}))
      uuids.insert(one.uuid);
  return uuids;
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
      events.push_back(
          {{true, "GpuUnhealthy", words + "; nobody is given it until that is over"}, true, reason.instance});
    else
      events.push_back({{true, reason.kind == ReasonKind::kXid ? "GpuError" : "GpuWarning",
                         words + "; it is given out as before"},
                        reason.kind == ReasonKind::kXid,
                        reason.instance});
  }
  if (change.healthy && !change.was_healthy)
    events.push_back({{false, "GpuHealthy", fmt::format("{} is given out again", gpu)}});
  return events;
}

bool knows_instance(const NodeState& state, const std::string& gpu, const gpu::MigInstance& instance) {
  return !uuids_of(gpu, instance, state.mig).empty();
}

std::vector<PodName> pods_with(const std::string& gpu, const gpu::MigInstance& instance,
                               const NodeState& state, const ClaimNames& claims,
                               const std::vector<ContainerUse>& containers) {
  const auto holders = gpu_holders(state.inventory, state.mig, claims, containers, std::nullopt);
  std::set<PodName> pods;
  for (const auto& uuid : uuids_of(gpu, instance, state.mig))
    if (const auto found = holders.find(uuid); found != holders.end())
      for (const auto& owner : found->second) pods.insert(pod_of(owner));
  return {pods.begin(), pods.end()};
}

}  // namespace drover::kube

#include "kube/dra/devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "kube/dra/attributes.h"
#include "kube/dra/quantity.h"

namespace drover::kube::dra {
namespace {

using nlohmann::json;

constexpr std::uint64_t kMemoryStep = 1 << 20;
/// API servers before 1.35 refuse more.
constexpr std::size_t kMostTaints = 4;

json range(const std::string& least, const std::string& whole) {
  return {{"default", whole}, {"validRange", {{"min", least}, {"max", whole}, {"step", least}}}};
}

json capacity_of(const gpu::Device& device, Sharing sharing) {
  json capacity = json::object();
  if (const auto bytes = memory_offered(device.memory_bytes.value_or(0), sharing); bytes > 0) {
    capacity["memory"] = {{"value", bytes_quantity(bytes)}};
    // One step more than the least has to fit, or the API server refuses the range.
    if (sharing == Sharing::kMemory && bytes >= 2 * kMemoryStep)
      capacity["memory"]["requestPolicy"] = range(bytes_quantity(kMemoryStep), bytes_quantity(bytes));
    // What is asked of the share decides; the memory itself can only be looked at, by selectors.
    if (sharing == Sharing::kShare)
      capacity["memory"]["requestPolicy"] = {{"default", "0"}, {"validValues", {"0"}}};
  }
  if (sharing == Sharing::kShare) {
    const auto whole = count_quantity(kWholeGpu);
    capacity["share"] = {{"value", whole}, {"requestPolicy", range("1", whole)}};
  }
  return capacity;
}

std::string_view effect_name(Effect effect) {
  switch (effect) {
    case Effect::kNoExecute:
      return "NoExecute";
    case Effect::kNoSchedule:
      return "NoSchedule";
    case Effect::kNone:
      break;
  }
  return "None";
}

const std::vector<Trouble>& troubles_of(const View& view, const gpu::Device& device) {
  static const std::vector<Trouble> none;
  const auto found = view.troubles.find(device.uuid);
  return found == view.troubles.end() ? none : found->second;
}

json taints_of(const View& view, const gpu::Device& device, const std::string& driver) {
  json taints = json::array();
  auto troubles = troubles_of(view, device);
  // The worst first, in case not all of them find room.
  std::ranges::sort(troubles, [](const Trouble& a, const Trouble& b) {
    return std::tie(b.effect, a.key, a.value) < std::tie(a.effect, b.key, b.value);
  });
  for (const auto& trouble : troubles) {
    if (taints.size() == kMostTaints) break;
    const auto time = format_time(trouble.since);
    json taint{{"key", trouble.key},
               {"effect", effect_name(trouble.effect)},
               {"timeAdded", time.substr(0, time.find('.')) + "Z"}};
    if (!trouble.value.empty()) taint["value"] = trouble.value;
    taints.push_back(std::move(taint));
  }
  if (!device.unfit.empty() && taints.empty())
    taints.push_back({{"key", driver + "/unfit"}, {"effect", effect_name(Effect::kNoSchedule)}});
  return taints;
}

}  // namespace

std::uint64_t memory_offered(std::uint64_t memory_bytes, Sharing sharing) {
  return sharing == Sharing::kMemory ? memory_bytes / kMemoryStep * kMemoryStep : memory_bytes;
}

std::string ailment_of(const View& view, const gpu::Device& device) {
  for (const auto& trouble : troubles_of(view, device))
    if (trouble.effect != Effect::kNone) return trouble.message.empty() ? trouble.key : trouble.message;
  return device.unfit;
}

std::vector<json> devices_of(const View& view, Sharing sharing, const std::string& driver) {
  const auto attributes = attributes_of(view);
  std::vector<json> devices;
  for (std::size_t i = 0; i < attributes.size(); ++i) {
    const auto& device = view.inventory.devices[i];
    const auto name = device_name(device);
    if (!name || device.mig == gpu::MigMode::kEnabled) continue;
    json made{{"name", *name}, {"attributes", attributes[i]}};
    // Without its memory it cannot be shared by it.
    const bool shared = sharing == Sharing::kShare ||
                        (sharing == Sharing::kMemory && device.memory_bytes.value_or(0) >= 2 * kMemoryStep);
    if (auto capacity = capacity_of(device, sharing); !capacity.empty())
      made["capacity"] = std::move(capacity);
    if (shared) made["allowMultipleAllocations"] = true;
    if (auto taints = taints_of(view, device, driver); !taints.empty()) made["taints"] = std::move(taints);
    devices.push_back(std::move(made));
  }
  return devices;
}

}  // namespace drover::kube::dra

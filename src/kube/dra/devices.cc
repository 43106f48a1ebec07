#include "kube/dra/devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "gpu/discovery.h"
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

/// What is said of a device that is given out.
struct Condition {
  std::vector<Trouble> troubles;
  std::string unhealthy;
};

std::vector<Trouble> troubles_of(const View& view, const std::string& uuid) {
  const auto found = view.troubles.find(uuid);
  return found == view.troubles.end() ? std::vector<Trouble>() : found->second;
}

Condition condition_of(const View& view, const gpu::Device& device) {
  return {troubles_of(view, device.uuid), device.unhealthy};
}

Condition condition_of(const View& view, const gpu::Device& device, const MigDevice& mig) {
  Condition condition{troubles_of(view, device.uuid),
                      device.unhealthy == gpu::kInMigMode ? "" : device.unhealthy};
  if (mig.uuid.empty()) return condition;
  for (auto& trouble : troubles_of(view, mig.uuid)) condition.troubles.push_back(std::move(trouble));
  return condition;
}

json taints_of(const Condition& condition, const std::string& driver) {
  json taints = json::array();
  auto troubles = condition.troubles;
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
  if (!condition.unhealthy.empty() && taints.empty())
    taints.push_back({{"key", driver + "/unfit"}, {"effect", effect_name(Effect::kNoSchedule)}});
  return taints;
}

json whole_gpu(const gpu::Device& device, const json& attributes, Sharing sharing) {
  json made{{"name", device_name(device).value_or("")}, {"attributes", attributes}};
  // Without its memory it cannot be shared by it.
  const bool shared = sharing == Sharing::kShare ||
                      (sharing == Sharing::kMemory && device.memory_bytes.value_or(0) >= 2 * kMemoryStep);
  if (auto capacity = capacity_of(device, sharing); !capacity.empty()) made["capacity"] = std::move(capacity);
  if (shared) made["allowMultipleAllocations"] = true;
  return made;
}

}  // namespace

std::uint64_t memory_offered(std::uint64_t memory_bytes, Sharing sharing) {
  return sharing == Sharing::kMemory ? memory_bytes / kMemoryStep * kMemoryStep : memory_bytes;
}

std::string ailment_of(const View& view, const gpu::Device& device) {
  const auto hindrance = hindrance_of(view, device.uuid);
  return hindrance.empty() ? device.unhealthy : hindrance;
}

std::string ailment_of(const View& view, const gpu::Device& device, const MigDevice& mig) {
  for (const auto& uuid : {device.uuid, mig.uuid})
    if (auto hindrance = hindrance_of(view, uuid); !hindrance.empty()) return hindrance;
  return condition_of(view, device, mig).unhealthy;
}

std::vector<json> devices_of(const View& view, Sharing sharing, const std::string& driver) {
  const auto attributes = attributes_of(view);
  std::vector<json> devices;
  for (std::size_t i = 0; i < attributes.size(); ++i) {
    const auto& device = view.inventory.devices[i];
    const auto add = [&](json made, const Condition& condition) {
      if (auto taints = taints_of(condition, driver); !taints.empty()) made["taints"] = std::move(taints);
      devices.push_back(std::move(made));
    };
    if (device_name(device) && device.mig != gpu::MigMode::kEnabled)
      add(whole_gpu(device, attributes[i], sharing), condition_of(view, device));
    for (const auto& mig : mig_devices_of(view, device))
      add(mig_device_json(device, mig, attributes[i]), condition_of(view, device, mig));
  }
  return devices;
}

}  // namespace drover::kube::dra

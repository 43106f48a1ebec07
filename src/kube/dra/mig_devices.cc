#include "kube/dra/mig_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "kube/dra/attributes.h"
#include "kube/dra/quantity.h"

namespace drover::kube::dra {
namespace {

using nlohmann::json;

/// What there is so much of.
using CounterValues = std::map<std::string, std::uint64_t>;

struct CounterName {
  const char* capacity;
  const char* counter;
  unsigned gpu::MigAttributes::* value;
};
constexpr std::array<CounterName, 6> kCounters{
    {{"multiprocessors", "multiprocessors", &gpu::MigAttributes::multiprocessors},
     {"copyEngines", "copy-engines", &gpu::MigAttributes::copy_engines},
     {"decoders", "decoders", &gpu::MigAttributes::decoders},
     {"encoders", "encoders", &gpu::MigAttributes::encoders},
     {"jpegEngines", "jpeg-engines", &gpu::MigAttributes::jpeg_engines},
     {"ofaEngines", "ofa-engines", &gpu::MigAttributes::ofa_engines}}};

std::string slice_counter(unsigned slice) {
  return fmt::format("memory-slice-{}", slice);
}

CounterValues counters_of(const gpu::MigAttributes& attributes) {
  CounterValues amounts;
  for (const auto& name : kCounters) amounts[name.counter] = attributes.*name.value;
  amounts["memory"] = attributes.memory_bytes;
  return amounts;
}

CounterValues consumed_by(const gpu::MigProfile& profile, const gpu::MigPlacement& placement) {
  auto amounts = counters_of(profile.attributes);
  for (auto slice = placement.start; slice < placement.start + placement.size; ++slice)
    amounts[slice_counter(slice)] = 1;
  std::erase_if(amounts, [](const auto& amount) { return amount.second == 0; });
  return amounts;
}

json json_of(const CounterValues& amounts) {
  auto counters = json::object();
  for (const auto& [name, amount] : amounts)
    counters[name] = {{"value", name == "memory" ? bytes_quantity(amount) : count_quantity(amount)}};
  return counters;
}

/// As much as the profiles show that there is: of each thing what as many instances of one kind as fit have.
CounterValues total_of(const gpu::MigGpu& gpu) {
  CounterValues total;
  for (const auto& profile : gpu.profiles) {
    for (const auto& [name, amount] : counters_of(profile.attributes))
      total[name] = std::max(total[name], amount * profile.instances);
    for (const auto& placement : profile.placements)
      for (auto slice = placement.start; slice < placement.start + placement.size; ++slice)
        total[slice_counter(slice)] = 1;
  }
  return total;
}

bool is_made(const View& view, const std::string& gpu, const gpu::MigInstanceFacts& instance) {
  return view.made.contains({gpu, instance.profile_id, instance.placement});
}

std::string counter_set_name(const gpu::Device& device) {
  return device_name(device).value_or("") + "-counter-set";
}

}  // namespace

/// As NVIDIA's driver for claims has it, which is not as its device plugin has it: "1g.5gb+me".
std::string profile_of_claims(const gpu::MigProfile& profile) {
  constexpr std::string_view kMedia = ".me";
  const std::string_view name = profile.name;
  if (!name.ends_with(kMedia)) return profile.name;
  return std::string(name.substr(0, name.size() - kMedia.size())) + "+me";
}

std::string mig_device_name(const gpu::Device& device, const gpu::MigProfile& profile, unsigned start) {
  auto name = profile_of_claims(profile);
  std::erase(name, '.');
  std::ranges::replace(name, '+', '-');
  return fmt::format("{}-mig-{}-{}-{}", device_name(device).value_or(""), name, profile.id, start);
}

std::vector<MigDevice> mig_devices_of(const View& view, const gpu::Device& device) {
  const auto found = view.mig.find(device.uuid);
  if (found == view.mig.end() || !device_name(device)) return {};
  std::vector<MigDevice> devices;
  for (const auto& profile : found->second.profiles) {
    for (const auto& placement : profile.placements) {
      MigDevice made{mig_device_name(device, profile, placement.start),
                     {device.uuid, profile.id, placement},
                     profile,
                     false,
                     ""};
      bool fits = true;
      for (const auto& instance : found->second.instances) {
        const bool same = instance.profile_id == profile.id && instance.placement == placement;
        const bool ours = is_made(view, device.uuid, instance);
        if (same) made.uuid = instance.uuid;
        if (same && !ours) made.fixed = true;
        if (!ours && instance.placement.overlaps(placement)) fits = fits && same && !instance.uuid.empty();
      }
      if (fits) devices.push_back(std::move(made));
    }
  }
  return devices;
}

json mig_device_json(const gpu::Device& device, const MigDevice& mig, json attributes) {
  for (const char* of_whole : {"nvlinkDomain", "nvlinkDomain2", "nvlinkDomain3", "nvlinkDomain4",
                               "nvlinkDomainSize", "nvlinkDomainLinks", "pcieSwitch", "board", "uuid"})
    attributes.erase(of_whole);
  attributes["type"] = {{"string", "mig"}};
  attributes["parentUUID"] = {{"string", device.uuid}};
  attributes["profile"] = {{"string", profile_of_claims(mig.profile)}};
  if (mig.fixed) attributes["uuid"] = {{"string", mig.uuid}};
  auto capacity = json::object();
  for (const auto& name : kCounters)
    capacity[name.capacity] = {{"value", count_quantity(mig.profile.attributes.*name.value)}};
  capacity["memory"] = {{"value", bytes_quantity(mig.profile.attributes.memory_bytes)}};
  const auto& placement = mig.part.placement;
  for (auto slice = placement.start; mig.fixed && slice < placement.start + placement.size; ++slice)
    capacity[fmt::format("memorySlice{}", slice)] = {{"value", "1"}};
  json made{{"name", mig.name}, {"attributes", std::move(attributes)}, {"capacity", std::move(capacity)}};
  if (!mig.fixed)
    made["consumesCounters"] =
        json::array({{{"counterSet", counter_set_name(device)},
                      {"counters", json_of(consumed_by(mig.profile, mig.part.placement))}}});
  return made;
}

std::vector<json> counter_sets_of(const View& view) {
  std::vector<json> sets;
  for (const auto& device : view.inventory.devices) {
    const auto devices = mig_devices_of(view, device);
    if (std::ranges::all_of(devices, &MigDevice::fixed)) continue;
    const auto& gpu = view.mig.at(device.uuid);
    auto left = total_of(gpu);
    for (const auto& instance : gpu.instances) {
      const auto* profile = gpu.profile(instance.profile_id);
      if (profile == nullptr || is_made(view, device.uuid, instance)) continue;
      for (const auto& [name, amount] : consumed_by(*profile, instance.placement))
        left[name] -= std::min(left[name], amount);
    }
    sets.push_back({{"name", counter_set_name(device)}, {"counters", json_of(left)}});
  }
  return sets;
}

}  // namespace drover::kube::dra

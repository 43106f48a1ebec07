#include "kube/plugin/resources.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "kube/gpu_topology.h"

namespace drover::kube {
namespace {

constexpr int kWhole = 100;  ///< percent
constexpr int kMilli = 1000;

/// How one GPU is offered by one rule.
struct Form {
  std::string name;
  const ShareRule* share = nullptr;  ///< null: as a whole
};

bool names_device(const std::vector<std::string>& names, const gpu::Device& device) {
  return names.empty() || std::ranges::any_of(names, [&](const std::string& name) {
           return name == device.uuid || name == std::to_string(device.index);
         });
}

Form form_of(const gpu::Device& device, const ResourceRule& rule, const PluginConfig& config) {
  for (const auto& share : config.shares)
    if (share.resource == rule.name && names_device(share.devices, device))
      return {share.rename.empty() ? rule.name : share.rename, &share};
  return {rule.name};
}

std::string trouble_of(const gpu::Device& device, const std::string& resource, const Holders& holders,
                       const std::map<std::string, std::string>& troubles) {
  if (!device.unhealthy.empty()) return device.unhealthy;
  if (const auto own = troubles.find(device.uuid); own != troubles.end()) return own->second;
  const auto held = holders.find(device.uuid);
  if (held == holders.end()) return "";
  for (const auto& holder : held->second)
    if (holder != resource) return fmt::format("{}{}", kInUseAs, holder);
  return "";
}

OfferedResource& resource_named(std::vector<OfferedResource>& resources, const std::string& name) {
  const auto found = std::ranges::find(resources, name, &OfferedResource::name);
  return found != resources.end() ? *found : resources.emplace_back(OfferedResource{name, false, {}});
}

}  // namespace

std::string_view uuid_in(std::string_view device_id) {
  return device_id.substr(0, device_id.find("::"));
}

int replicas_of(const gpu::Device& device, const ShareRule& rule) {
  if (!rule.memory) return rule.replicas;
  const auto by_time = rule.compute ? kWhole / *rule.compute : kMostReplicas;
  const auto by_memory = device.memory_bytes.value_or(0) / *rule.memory;
  return static_cast<int>(std::min<std::uint64_t>(by_memory, static_cast<std::uint64_t>(by_time)));
}

std::optional<ReplicaShare> replica_share(const gpu::Device& device, const std::string& resource,
                                          const PluginConfig& config) {
  constexpr unsigned kBitsOfMib = 20;
  for (const auto& rule : config.resources) {
    if (!matches(rule.pattern, device.model)) continue;
    const auto [name, share] = form_of(device, rule, config);
    if (name != resource) continue;
    const auto replicas = share == nullptr ? 0 : replicas_of(device, *share);
    if (replicas == 0 || share->way == ShareWay::kTimeSlices) return std::nullopt;
    ReplicaShare made{device.uuid, share->way, kMilli / replicas, std::nullopt};
    if (share->compute)
      made.milli = *share->compute * (kMilli / kWhole);
    else if (share->memory)
      made.milli =
          static_cast<int>((*share->memory >> kBitsOfMib) * kMilli / (*device.memory_bytes >> kBitsOfMib));
    if (device.memory_bytes)
      made.memory_mib =
          share->memory.value_or(*device.memory_bytes / static_cast<unsigned>(replicas)) >> kBitsOfMib;
    made.milli = std::max(made.milli, 1);
    return made;
  }
  return std::nullopt;
}

std::vector<OfferedResource> offer(const gpu::Inventory& inventory, const PluginConfig& config,
                                   const Holders& holders, const std::map<std::string, std::string>& troubles,
                                   const ResourceNames& names) {
  std::vector<OfferedResource> resources;
  for (const auto& device : inventory.devices) {
    std::set<std::string> given;  // two patterns may lead to one name
    const auto own = names.find(device.uuid);
    const auto rules = own == names.end() ? config.resources : std::vector{ResourceRule{own->second, "*"}};
    for (const auto& rule : rules) {
      if (!matches(rule.pattern, device.model)) continue;
      const auto form = form_of(device, rule, config);
      if (!given.insert(form.name).second) continue;
      const auto replicas = form.share == nullptr ? 0 : replicas_of(device, *form.share);
      if (form.share != nullptr && replicas == 0) continue;
      auto& resource = resource_named(resources, form.name);
      const OfferedDevice offered{device.uuid, device.numa_node,
                                  trouble_of(device, form.name, holders, troubles)};
      if (form.share == nullptr) resource.devices.push_back(offered);
      for (int i = 0; i < replicas; ++i) {
        resource.shared = true;
        resource.devices.push_back(offered);
        resource.devices.back().id += fmt::format("::{}", i);
      }
    }
  }
  return resources;
}

}  // namespace drover::kube

#include "kube/plugin/resources.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "kube/gpu_topology.h"

namespace drover::kube {
namespace {

/// How one GPU is offered by one rule.
struct Form {
  std::string name;
  int replicas = 0;  ///< 0: as a whole
  bool mps = false;
};

bool names_device(const std::vector<std::string>& names, const gpu::Device& device) {
  return names.empty() || std::ranges::any_of(names, [&](const std::string& name) {
           return name == device.uuid || name == std::to_string(device.index);
         });
}

Form form_of(const gpu::Device& device, const ResourceRule& rule, const PluginConfig& config) {
  for (const auto& share : config.shares)
    if (share.resource == rule.name && names_device(share.devices, device))
      return {share.rename.empty() ? rule.name : share.rename, share.replicas, share.mps};
  return {rule.name, 0, false};
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

std::optional<MpsShare> mps_share_of(const gpu::Device& device, const std::string& resource,
                                     const PluginConfig& config) {
  constexpr int kAll = 100;
  constexpr unsigned kBitsOfMib = 20;
  for (const auto& rule : config.resources) {
    if (!matches(rule.pattern, device.model)) continue;
    const auto form = form_of(device, rule, config);
    if (form.name != resource) continue;
    if (!form.mps) return std::nullopt;
    MpsShare share{device.uuid, kAll / form.replicas, std::nullopt};
    if (device.memory_bytes)
      share.memory_mib = (*device.memory_bytes / static_cast<unsigned>(form.replicas)) >> kBitsOfMib;
    return share;
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
      auto& resource = resource_named(resources, form.name);
      const OfferedDevice offered{device.uuid, device.numa_node,
                                  trouble_of(device, form.name, holders, troubles)};
      if (form.replicas == 0) resource.devices.push_back(offered);
      for (int i = 0; i < form.replicas; ++i) {
        resource.shared = true;
        resource.devices.push_back(offered);
        resource.devices.back().id += fmt::format("::{}", i);
      }
    }
  }
  return resources;
}

}  // namespace drover::kube

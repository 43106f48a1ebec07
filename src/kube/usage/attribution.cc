#include "kube/usage/attribution.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "kube/dra/attributes.h"
#include "kube/plugin/resources.h"

namespace drover::kube {
namespace {

constexpr std::size_t kIdLength = 64;

metrics::Owner owner_named(const std::string& pod_namespace, const std::string& pod,
                           const std::string& container) {
  return {{"namespace", pod_namespace}, {"pod", pod}, {"container", container}};
}

bool is_container_id(std::string_view text) {
  return text.size() == kIdLength &&
         std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

/// In a name like "<id>", "cri-containerd-<id>.scope", "crio-<id>.scope" or "<slice>:cri-containerd:<id>".
std::optional<std::string_view> id_in(std::string_view name) {
  if (name.ends_with(".scope")) name.remove_suffix(std::string_view(".scope").size());
  if (const auto before = name.find_last_of("-:"); before != std::string_view::npos)
    name.remove_prefix(before + 1);
  return is_container_id(name) ? std::optional(name) : std::nullopt;
}

/// What the GPU is called of which "gpu-3-mig-1g5gb-19-0" is a part.
std::string gpu_in(const std::string& claim_name) {
  return claim_name.substr(0, claim_name.find("-mig-"));
}

std::set<std::string> uuids_of(const ContainerUse& use, const ClaimNames& claims,
                               const std::map<std::string, std::string>& by_claim_name,
                               const std::set<std::string, std::less<>>& known) {
  std::set<std::string> uuids;
  for (const auto& devices : use.devices)
    for (const auto& id : devices.device_ids)
      if (known.contains(uuid_in(id))) uuids.emplace(uuid_in(id));
  for (const auto& device : use.claims)
    if (const auto found = by_claim_name.find(gpu_in(device.device));
        found != by_claim_name.end() && device.driver == claims.driver && device.pool == claims.pool)
      uuids.insert(found->second);
  return uuids;
}

}  // namespace

std::map<std::string, std::vector<metrics::Owner>> gpu_holders(
    const gpu::Inventory& inventory, const ClaimNames& claims, const std::vector<ContainerUse>& uses,
    const std::optional<std::vector<RunningContainer>>& running) {
  std::map<std::string, std::string> by_claim_name;
  std::set<std::string, std::less<>> known;
  for (const auto& device : inventory.devices) {
    known.insert(device.uuid);
    if (const auto name = dra::device_name(device)) by_claim_name[*name] = device.uuid;
  }
  std::map<std::string, std::set<metrics::Owner>> found;
  for (const auto& use : uses)
    for (const auto& uuid : uuids_of(use, claims, by_claim_name, known))
      found[uuid].insert(owner_named(use.pod_namespace, use.pod, use.container));
  std::set<metrics::Owner> alive;
  if (running)
    for (const auto& each : *running) alive.insert(owner_named(each.pod_namespace, each.pod, each.container));
  std::map<std::string, std::vector<metrics::Owner>> holders;
  for (const auto& [uuid, owners] : found) {
    auto& chosen = holders[uuid];
    std::ranges::copy_if(owners, std::back_inserter(chosen),
                         [&](const metrics::Owner& owner) { return alive.contains(owner); });
    if (chosen.empty()) chosen.assign(owners.begin(), owners.end());
  }
  return holders;
}

metrics::OwnerOf owner_by_cgroup(const std::vector<RunningContainer>& running) {
  std::map<std::string, metrics::Owner, std::less<>> owners;
  for (const auto& each : running)
    owners[each.id] = owner_named(each.pod_namespace, each.pod, each.container);
  return [owners = std::move(owners)](std::string_view cgroups) {
    for (const auto name : metrics::cgroup_names(cgroups))
      if (const auto id = id_in(name))
        if (const auto owner = owners.find(*id); owner != owners.end()) return owner->second;
    return metrics::Owner{};
  };
}

}  // namespace drover::kube

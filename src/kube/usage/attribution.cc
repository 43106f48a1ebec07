#include "kube/usage/attribution.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "kube/dra/attributes.h"
#include "kube/dra/mig_devices.h"
#include "kube/plugin/resources.h"

namespace drover::kube {
namespace {

constexpr std::size_t kIdLength = 64;
constexpr const char* kNamespaceLabel = "namespace";
constexpr const char* kPodLabel = "pod";

metrics::Owner owner_named(const std::string& pod_namespace, const std::string& pod,
                           const std::string& container) {
  return {{kNamespaceLabel, pod_namespace}, {kPodLabel, pod}, {"container", container}};
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

/// What the GPU is called of which "gpu-3-mig-1g5gb-19-0" is a part that is not there yet, or any more.
std::string gpu_in(const std::string& claim_name) {
  return claim_name.substr(0, claim_name.find("-mig-"));
}

/// What devices are called in limits and in claims, and which UUIDs whoever has them has.
struct DeviceNames {
  std::map<std::string, std::set<std::string>, std::less<>> by_uuid;
  std::map<std::string, std::set<std::string>, std::less<>> by_claim_name;
};

DeviceNames names_of(const gpu::Inventory& inventory, const std::map<std::string, gpu::MigGpu>& mig) {
  DeviceNames names;
  for (const auto& device : inventory.devices) {
    const auto name = dra::device_name(device);
    names.by_uuid[device.uuid] = {device.uuid};
    if (name) names.by_claim_name[*name] = {device.uuid};
    const auto cut = mig.find(device.uuid);
    if (cut == mig.end()) continue;
    for (const auto& instance : cut->second.instances) {
      if (instance.uuid.empty()) continue;
      const std::set<std::string> both{device.uuid, instance.uuid};
      names.by_uuid[instance.uuid] = both;
      const auto* profile = cut->second.profile(instance.profile_id);
      if (name && profile != nullptr)
        names.by_claim_name[dra::mig_device_name(device, *profile, instance.placement.start)] = both;
    }
  }
  return names;
}

std::set<std::string> uuids_of(const ContainerUse& use, const ClaimNames& claims, const DeviceNames& names) {
  std::set<std::string> uuids;
  for (const auto& devices : use.devices)
    for (const auto& id : devices.device_ids)
      if (const auto found = names.by_uuid.find(uuid_in(id)); found != names.by_uuid.end())
        uuids.insert(found->second.begin(), found->second.end());
  for (const auto& device : use.claims) {
    if (device.driver != claims.driver || device.pool != claims.pool) continue;
    auto found = names.by_claim_name.find(device.device);
    if (found == names.by_claim_name.end()) found = names.by_claim_name.find(gpu_in(device.device));
    if (found != names.by_claim_name.end()) uuids.insert(found->second.begin(), found->second.end());
  }
  return uuids;
}

}  // namespace

std::map<std::string, std::vector<metrics::Owner>> gpu_holders(
    const gpu::Inventory& inventory, const std::map<std::string, gpu::MigGpu>& mig, const ClaimNames& claims,
    const std::vector<ContainerUse>& uses, const std::optional<std::vector<RunningContainer>>& running) {
  const auto names = names_of(inventory, mig);
  std::map<std::string, std::set<metrics::Owner>> found;
  for (const auto& use : uses)
    for (const auto& uuid : uuids_of(use, claims, names))
      found[uuid].insert(owner_named(use.pod_namespace, use.pod, use.container));
  std::set<metrics::Owner> alive;
  if (running)
    for (const auto& each : *running) alive.insert(owner_of(each));
  std::map<std::string, std::vector<metrics::Owner>> holders;
  for (const auto& [uuid, owners] : found) {
    auto& chosen = holders[uuid];
    std::ranges::copy_if(owners, std::back_inserter(chosen),
                         [&](const metrics::Owner& owner) { return alive.contains(owner); });
    if (chosen.empty()) chosen.assign(owners.begin(), owners.end());
  }
  return holders;
}

PodName pod_of(const metrics::Owner& owner) {
  PodName pod;
  for (const auto& [name, value] : owner) {
    if (name == kNamespaceLabel) pod.name_space = value;
    if (name == kPodLabel) pod.name = value;
  }
  return pod;
}

metrics::Owner owner_of(const RunningContainer& container) {
  return owner_named(container.pod_namespace, container.pod, container.container);
}

gpu::TaskOf container_by_cgroup(const std::vector<RunningContainer>& running) {
  std::set<std::string, std::less<>> ids;
  for (const auto& each : running) ids.insert(each.id);
  return [ids = std::move(ids)](std::string_view cgroups) -> std::string {
    for (const auto name : metrics::cgroup_names(cgroups))
      if (const auto id = id_in(name); id && ids.contains(*id)) return std::string(*id);
    return "";
  };
}

bool Newcomers::see(std::string_view cgroups) {
  if (cgroups.empty()) return false;  // it has ended
  const auto known = looks_.find(cgroups);
  if (known != looks_.end()) return known->second < kLooks && ++known->second > 0;
  if (looks_.size() >= kMost) looks_.clear();
  looks_.emplace(cgroups, 1);
  return true;
}

metrics::OwnerOf owner_by_cgroup(const std::vector<RunningContainer>& running) {
  std::map<std::string, metrics::Owner> owners;
  for (const auto& each : running) owners[each.id] = owner_of(each);
  return [owners = std::move(owners), container_of = container_by_cgroup(running)](std::string_view cgroups) {
    const auto owner = owners.find(container_of(cgroups));
    return owner == owners.end() ? metrics::Owner{} : owner->second;
  };
}

}  // namespace drover::kube

#include "kube/scheduler/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace drover::kube::scheduler {
namespace {

template <typename Map, typename Key>
void remove(Map& map, const Key& key) {
  if (const auto found = map.find(key); found != map.end()) map.erase(found);
}

template <typename Map, typename Key>
const typename Map::mapped_type* find(const Map& map, const Key& key) {
  const auto found = map.find(key);
  return found == map.end() ? nullptr : &found->second;
}

/// One more, or one less, of those of `key` that are on that node.
template <typename Map>
void count_holder(Map& holders, const typename Map::key_type& key, const NodeState& state, int sign) {
  if (sign > 0) {
    ++holders[key][&state];
    return;
  }
  const auto of_key = holders.find(key);
  const auto on_node = of_key->second.find(&state);
  if (--on_node->second == 0) of_key->second.erase(on_node);
  if (of_key->second.empty()) holders.erase(of_key);
}

/// How a class is asked for as if it were a resource.
std::string own_resource(std::string_view device_class) {
  return fmt::format("deviceclass.resource.kubernetes.io/{}", device_class);
}

}  // namespace

void Cluster::put_node(Node node) {
  node.taints = taints_.share(node.taints ? std::move(node.taints) : std::make_shared<const Taints>());
  auto& state = nodes_[node.name];
  state.node = std::move(node);
}

void Cluster::remove_node(std::string_view name) {
  const auto found = nodes_.find(name);
  if (found == nodes_.end()) return;
  found->second.node.reset();
  drop_if_empty(name);
}

void Cluster::put_pod(Pod pod) {
  remove_pod(pod.uid);
  if (pod.node_name.empty() || pod.ended) return;
  pod.labels = labels_.share(pod.labels ? std::move(pod.labels) : std::make_shared<const Labels>());
  pod.made_from =
      templates_.share(pod.made_from ? std::move(pod.made_from) : std::make_shared<const PodTemplate>());
  auto& state = nodes_[pod.node_name];
  count(state, pod, 1);
  node_of_pod_.emplace(pod.uid, pod.node_name);
  auto uid = pod.uid;
  state.pods.emplace(std::move(uid), std::make_shared<const Pod>(std::move(pod)));
}

void Cluster::remove_pod(std::string_view uid) {
  const auto found = node_of_pod_.find(uid);
  if (found == node_of_pod_.end()) return;
  const auto node_name = std::move(found->second);
  node_of_pod_.erase(found);
  auto& state = nodes_.find(node_name)->second;
  const auto pod = state.pods.find(uid);
  count(state, *pod->second, -1);
  state.pods.erase(pod);
  // Not subtracted: a sum that has overflowed would come out too small.
  state.requested = {};
  for (const auto& [other_uid, other] : state.pods) add(state.requested, other->made_from->requests);
  drop_if_empty(node_name);
}

void Cluster::count(NodeState& state, const Pod& pod, int sign) {
  const auto& made_from = *pod.made_from;
  if (sign > 0) add(state.requested, made_from.requests);
  for (const auto& port : made_from.ports) {
    if (sign > 0)
      state.ports.insert(port);
    else
      state.ports.erase(state.ports.find(port));
  }
  for (const auto& term : made_from.anti_affinity) count_holder(anti_affinity_, term, state, sign);
  for (const auto& claim : made_from.volume_claims)
    count_holder(claim_users_, Named{pod.name_space, claim}, state, sign);
}

void Cluster::drop_if_empty(std::string_view node_name) {
  const auto found = nodes_.find(node_name);
  const auto& [node, pods, requested, ports, csi_drivers] = found->second;
  if (!node && pods.empty() && csi_drivers.empty()) nodes_.erase(found);
}

void Cluster::put_namespace(std::string name, Labels labels) {
  namespaces_.insert_or_assign(std::move(name), std::move(labels));
}

void Cluster::remove_namespace(std::string_view name) {
  remove(namespaces_, name);
}

void Cluster::put_volume_claim(VolumeClaim claim) {
  Named name{claim.name_space, claim.name};
  volume_claims_.insert_or_assign(std::move(name), std::move(claim));
}

void Cluster::remove_volume_claim(std::string_view name_space, std::string_view name) {
  remove(volume_claims_, Named{name_space, name});
}

void Cluster::put_volume(Volume volume) {
  auto name = volume.name;
  volumes_.insert_or_assign(std::move(name), std::move(volume));
}

void Cluster::remove_volume(std::string_view name) {
  remove(volumes_, name);
}

void Cluster::put_storage_class(StorageClass storage_class) {
  auto name = storage_class.name;
  storage_classes_.insert_or_assign(std::move(name), std::move(storage_class));
}

void Cluster::remove_storage_class(std::string_view name) {
  remove(storage_classes_, name);
}

void Cluster::put_csi_driver(const CsiDriver& driver) {
  csi_drivers_.insert_or_assign(driver.name, driver.tells_capacity);
}

void Cluster::remove_csi_driver(std::string_view name) {
  remove(csi_drivers_, name);
}

void Cluster::put_storage_capacity(StorageCapacity capacity) {
  Named name{capacity.name_space, capacity.name};
  storage_capacities_.insert_or_assign(std::move(name), std::move(capacity));
}

void Cluster::remove_storage_capacity(std::string_view name_space, std::string_view name) {
  remove(storage_capacities_, Named{name_space, name});
}

void Cluster::keep(const VolumeDecision& decision, const std::string& node) {
  if (decision.volume.empty()) {
    auto& kept = selected_nodes_[{decision.name_space, decision.claim}];
    kept = {node, kept.times + 1};
  } else {
    auto& kept = owners_[decision.volume];
    kept = {{decision.name_space, decision.claim, decision.claim_uid}, kept.times + 1};
  }
}

void Cluster::drop(const VolumeDecision& decision) {
  const auto drop_one = [](auto& kept, const auto& key) {
    if (const auto found = kept.find(key); found != kept.end() && --found->second.times <= 0)
      kept.erase(found);
  };
  if (decision.volume.empty())
    drop_one(selected_nodes_, Named{decision.name_space, decision.claim});
  else
    drop_one(owners_, decision.volume);
}

std::optional<Volume::Owner> Cluster::owner_of(const Volume& volume) const {
  if (volume.owner) return volume.owner;
  const auto* const kept = find(owners_, volume.name);
  return kept == nullptr ? std::nullopt : std::optional(kept->what);
}

std::string Cluster::selected_node(const VolumeClaim& claim) const {
  const auto* const kept = find(selected_nodes_, Named{claim.name_space, claim.name});
  return kept == nullptr ? claim.selected_node : kept->what;
}

const StorageClass* Cluster::storage_class(std::string_view name) const {
  return find(storage_classes_, name);
}

bool Cluster::tells_capacity(std::string_view driver) const {
  const auto* const found = find(csi_drivers_, driver);
  return found != nullptr && *found;
}

void Cluster::put_csi_drivers(CsiDrivers drivers) {
  nodes_[drivers.node_name].csi_drivers = std::move(drivers.limited);
  drop_if_empty(drivers.node_name);
}

void Cluster::put_device_class(std::string_view name, std::string resource) {
  device_classes_.insert_or_assign(own_resource(name), std::move(resource));
}

void Cluster::remove_device_class(std::string_view name) {
  remove(device_classes_, own_resource(name));
}

bool Cluster::has_device_class(std::string_view resource) const {
  return device_classes_.contains(resource) ||
         std::ranges::any_of(device_classes_, [&](const auto& item) { return item.second == resource; });
}

const VolumeClaim* Cluster::volume_claim(std::string_view name_space, std::string_view name) const {
  return find(volume_claims_, Named{name_space, name});
}

const Volume* Cluster::volume(std::string_view name) const {
  return find(volumes_, name);
}

bool Cluster::is_used(std::string_view name_space, std::string_view claim) const {
  const auto* const users = find(claim_users_, Named{name_space, claim});
  if (users == nullptr) return false;
  return std::ranges::any_of(*users, [](const auto& user) { return user.first->node.has_value(); });
}

}  // namespace drover::kube::scheduler

#include "kube/scheduler/volume_choice.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace drover::kube::scheduler {
namespace {

constexpr std::string_view kNoVolume = "node(s) didn't find available persistent volumes to bind";
constexpr std::string_view kNoStorage = "node(s) did not have enough free storage";

bool reaches(const Volume& volume, const NodeState& node) {
  return !volume.node_terms || matches(*volume.node_terms, node.node->labels, "");
}

/// Whether a node can attach one more that needs no driver, or whose driver it has and need not count.
bool can_attach(const Volume& volume, const NodeState& node) {
  if (volume.kind != "csi") return true;
  const auto driver = node.csi_drivers.find(volume.driver);
  return driver != node.csi_drivers.end() && !driver->second;
}

/// Apart from where it is and whose.
bool is_like(const Volume& volume, const VolumeClaim& claim) {
  return volume.storage_class == claim.storage_class && volume.size >= claim.size.value_or(0) &&
         volume.traits.block == claim.traits.block &&
         volume.traits.attributes_class == claim.traits.attributes_class && !volume.terminating;
}

bool is_free_for(const Volume& volume, const VolumeClaim& claim) {
  return volume.available && (!claim.selector || matches(*claim.selector, volume.labels)) &&
         std::ranges::includes(volume.traits.modes, claim.traits.modes);
}

bool is_in(const StorageClass& storage_class, const Node& node) {
  if (!storage_class.topologies) return true;
  return std::ranges::any_of(*storage_class.topologies, [&](const auto& requirements) {
    return std::ranges::all_of(requirements,
                               [&](const auto& requirement) { return matches(requirement, node.labels); });
  });
}

}  // namespace

void UnboundClaims::add(const VolumeClaim& claim, const StorageClass& storage_class) {
  Unbound unbound{&claim, &storage_class};
  for (const auto& [name, volume] : cluster_.volumes()) {
    if (!is_like(volume, claim)) continue;
    const auto owner = cluster_.owner_of(volume);
    if (owner && is_owner(*owner, claim) && unbound.own == nullptr) unbound.own = &volume;
    if (!owner && is_free_for(volume, claim)) unbound.candidates.push_back(&volume);
  }
  std::ranges::sort(unbound.candidates, {},
                    [](const Volume* volume) { return std::tie(volume->size, volume->name); });
  const auto before = std::ranges::upper_bound(claims_, claim.size.value_or(0), {}, [](const Unbound& other) {
    return other.claim->size.value_or(0);
  });
  claims_.insert(before, std::move(unbound));
}

/// nullptr when there is none.
const Volume* UnboundClaims::find(const Unbound& unbound, const NodeState& node,
                                  const std::vector<VolumeDecision>& taken) {
  const auto is_taken = [&](const Volume& volume) {
    return std::ranges::find(taken, volume.name, &VolumeDecision::volume) != taken.end();
  };
  if (unbound.own != nullptr && !is_taken(*unbound.own))
    return reaches(*unbound.own, node) ? unbound.own : nullptr;
  const auto found = std::ranges::find_if(unbound.candidates, [&](const Volume* volume) {
    return reaches(*volume, node) && can_attach(*volume, node) && !is_taken(*volume);
  });
  return found == unbound.candidates.end() ? nullptr : *found;
}

bool UnboundClaims::has_room(const Unbound& unbound, const NodeState& node) const {
  const auto* const claim = unbound.claim;
  const auto* const storage_class = unbound.storage_class;
  if (!claim->size || !cluster_.tells_capacity(storage_class->provisioner)) return true;
  return std::ranges::any_of(cluster_.storage_capacities(), [&](const auto& item) {
    const auto& capacity = item.second;
    return capacity.storage_class == storage_class->name && capacity.largest &&
           *capacity.largest >= *claim->size && matches(capacity.nodes, node.node->labels);
  });
}

UnboundClaims::Choice UnboundClaims::choose(const NodeState& node) const {
  Choice choice;
  const auto decide = [&](const VolumeClaim& claim, std::string volume) {
    // A pod may name a claim twice.
    if (std::ranges::find(choice.decisions, claim.uid, &VolumeDecision::claim_uid) != choice.decisions.end())
      return;
    choice.decisions.push_back({claim.name_space, claim.name, claim.uid, std::move(volume)});
  };
  std::vector<const Unbound*> to_make;
  for (const auto& unbound : claims_) {
    const auto& claim = *unbound.claim;
    if (const auto selected = cluster_.selected_node(claim); !selected.empty()) {
      if (selected != node.node->name) return {{}, {kNoVolume}};
      to_make.push_back(&unbound);
    } else if (const auto* const volume = find(unbound, node, choice.decisions)) {
      decide(claim, volume->name);
    } else {
      to_make.push_back(&unbound);
    }
  }
  for (const auto* unbound : to_make) {
    const auto& storage_class = *unbound->storage_class;
    if (!storage_class.makes_volumes() || !is_in(storage_class, *node.node)) return {{}, {kNoVolume}};
    if (!has_room(*unbound, node)) return {{}, {kNoStorage}};
    decide(*unbound->claim, "");
  }
  return choice;
}

}  // namespace drover::kube::scheduler

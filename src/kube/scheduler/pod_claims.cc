// The claims of the pods that a scheduler decides on.

#include <algorithm>
#include <utility>

#include "kube/scheduler/scheduler.h"

namespace drover::kube::scheduler {
namespace {

constexpr const char* kAdminLabel = "resource.kubernetes.io/admin-access";

/// Of a claim that is held by no pod of ours alone: as if it was one.
std::string claim_job(const std::string& uid) {
  return "claim/" + uid;
}

std::shared_ptr<const ClaimAllocation> shared(const ClaimAllocation& allocation) {
  return std::make_shared<const ClaimAllocation>(allocation);
}

}  // namespace

bool Scheduler::lets_admins(const std::string& name_space) const {
  const auto found = cluster_.namespaces().find(name_space);
  if (found == cluster_.namespaces().end()) return false;
  const auto* const value = label(found->second, kAdminLabel);
  return value != nullptr && *value == "true";
}

void Scheduler::put_slice(ResourceSlice slice) {
  changed_ = true;
  const auto node = slice.nodes.node_name;
  claims_.put_slice(std::move(slice));
  if (!node.empty()) put_places(node);
}

void Scheduler::remove_slice(const std::string& name) {
  changed_ = true;
  const auto node = claims_.node_of_slice(name);
  claims_.remove_slice(name);
  if (!node.empty()) put_places(node);
}

void Scheduler::put_device_class(const DeviceClass& device_class) {
  claims_.put_class(device_class);
  change_cluster(
      [&](Cluster& cluster) { cluster.put_device_class(device_class.name, device_class.extended_resource); });
}

void Scheduler::remove_device_class(const std::string& name) {
  claims_.remove_class(name);
  change_cluster([&](Cluster& cluster) { cluster.remove_device_class(name); });
}

void Scheduler::put_taint_rule(const DeviceTaintRule& rule) {
  changed_ = true;
  claims_.put_taint_rule(rule);
}

void Scheduler::remove_taint_rule(const std::string& name) {
  changed_ = true;
  claims_.remove_taint_rule(name);
}

void Scheduler::put_claim(ResourceClaim claim) {
  changed_ = true;
  const auto uid = claim.uid;
  if (const auto decided = decided_claims_.find(uid); decided != decided_claims_.end()) {
    if (claim.allocation) {
      decided_claims_.erase(decided);
    } else {
      claim.allocation = decided->second.allocation;
      claim.reserved_for = decided->second.reserved_for;
    }
  }
  claims_.put_claim(std::move(claim));
  follow_claim(uid);
}

void Scheduler::remove_claim(const std::string& uid) {
  changed_ = true;
  decided_claims_.erase(uid);
  claims_.remove_claim(uid);
  bound_.remove(claim_job(uid));
}

/// UUIDs of GPUs that its own claims give it: those that were made for it alone.
std::vector<std::string> Scheduler::claimed_gpus(const Known& known) const {
  std::vector<std::string> uuids;
  const auto& pod = known.object.pod;
  for (const auto& reference : pod.claims) {
    const auto* const claim = claims_.pools().claim(pod.name_space, reference.claim);
    if (claim == nullptr || !claim->allocation || claim->owner_uid != pod.uid) continue;
    const auto gpus = claims_.gpus_of(*claim->allocation);
    uuids.insert(uuids.end(), gpus.begin(), gpus.end());
  }
  return uuids;
}

void Scheduler::follow_claims(const Pod& pod) {
  for (const auto& reference : pod.claims)
    if (const auto* const claim = claims_.pools().claim(pod.name_space, reference.claim))
      follow_claim(std::string(claim->uid));
}

/// A device is free when its claim is deallocated, not when a pod ends: until then it is the claim's.
void Scheduler::follow_claim(const std::string& uid) {
  const auto* const claim = claims_.pools().claim(uid);
  const auto owner = claim == nullptr ? pods_.end() : pods_.find(claim->owner_uid);
  if (owner != pods_.end() && !owner->second.node.empty()) {
    bound_.remove(claim_job(uid));
    bound_.put(owner->first, bound_pod(owner->second));
    return;
  }
  const auto gpus = claim == nullptr || !claim->allocation ? std::vector<std::string>()
                                                           : claims_.gpus_of(*claim->allocation);
  if (gpus.empty()) return bound_.remove(claim_job(uid));
  BoundPod holder;
  holder.job.id = claim_job(uid);
  holder.demand.gpus = {{static_cast<int>(gpus.size()), {}}};
  holder.decision.node = claims_.node_of(gpus.front());
  for (const auto& uuid : gpus) holder.decision.gpus.push_back({.uuid = uuid});
  holder.ours = false;
  bound_.put(claim_job(uid), std::move(holder));
}

/// Decides what is written into its claims. Of `gpus`, which placement has chosen for all, those that claims
/// do not take are left for its limits.
bool Scheduler::take_claims(Known& known, const NodeState& node, std::vector<placement::Grant>& gpus) {
  const auto& pod = known.object.pod;
  known.claims.clear();
  if (pod.claims.empty()) return true;
  const auto claims = claims_.claims_of(pod);
  if (!claims) return false;
  std::vector<std::string> wished;
  for (const auto& grant : gpus) wished.push_back(grant.uuid);
  const auto allocated = claims_.allocate(*node.node, *claims, wished, lets_admins(pod.name_space));
  if (!allocated || !allocated->fits()) return false;
  std::size_t next = 0;
  std::vector<ResourceClaim> changed;
  for (const auto* claim : *claims) {
    auto copy = *claim;
    ClaimDecision decision{claim->uid, claim->name_space, claim->name, std::nullopt};
    if (!copy.allocation) {
      decision.allocation = allocated->allocations.at(next++);
      copy.allocation = shared(*decision.allocation);
      const auto taken = claims_.gpus_of(*copy.allocation);
      std::erase_if(gpus,
                    [&](const auto& grant) { return std::ranges::find(taken, grant.uuid) != taken.end(); });
    }
    copy.reserved_for.push_back({"pods", pod.name, pod.uid});
    known.claims.push_back(std::move(decision));
    changed.push_back(std::move(copy));
  }
  gpus.resize(std::min<std::size_t>(gpus.size(), static_cast<std::size_t>(known.demand.gpu_count())));
  for (auto& claim : changed) {
    decided_claims_.insert_or_assign(claim.uid, claim);
    claims_.put_claim(std::move(claim));
  }
  return true;
}

void Scheduler::give_back_claims(Known& known, bool stand) {
  for (const auto& decision : std::exchange(known.claims, {})) {
    const auto decided = decided_claims_.find(decision.uid);
    if (decided == decided_claims_.end() || stand) continue;  // the API server has it, or may have it
    auto claim = std::move(decided->second);
    decided_claims_.erase(decided);
    if (decision.allocation) claim.allocation.reset();
    std::erase_if(claim.reserved_for, [&](const auto& user) { return user.uid == known.object.pod.uid; });
    claims_.put_claim(std::move(claim));
  }
}

}  // namespace drover::kube::scheduler

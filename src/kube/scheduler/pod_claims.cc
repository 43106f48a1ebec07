// The claims of the pods that a scheduler decides on.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "kube/scheduler/gpu_request.h"
#include "kube/scheduler/scheduler.h"

namespace drover::kube::scheduler {
namespace {

constexpr const char* kAdminLabel = "resource.kubernetes.io/admin-access";
constexpr int kWholeGpu = 1000;

/// Of a claim that is held by no pod of ours alone: as if it was one.
std::string claim_job(const std::string& uid) {
  return "claim/" + uid;
}

/// Of the claim that is to be made for a pod's resources, until the API server has given it its own.
std::string uid_to_come(const std::string& pod_uid) {
  return "to-be-made/" + pod_uid;
}

bool have_the_same(const ClaimAllocation& one, const ClaimAllocation& other) {
  return std::ranges::equal(one.devices, other.devices, {}, &AllocatedDevice::id, &AllocatedDevice::id);
}

std::shared_ptr<const ClaimAllocation> shared(const ClaimAllocation& allocation) {
  return std::make_shared<const ClaimAllocation>(allocation);
}

/// When all are given in the same way; else as if they were whole.
placement::Share share_of(const std::vector<placement::Grant>& grants) {
  const auto of = [](const placement::Grant& grant) {
    return grant.memory_bytes > 0 && grant.milli < kWholeGpu
               ? placement::Share{.memory_bytes = grant.memory_bytes}
               : placement::Share{.milli = std::max(grant.milli, 1)};
  };
  if (grants.empty()) return {};
  const auto first = of(grants.front());
  return std::ranges::all_of(grants, [&](const auto& grant) { return of(grant) == first; })
             ? first
             : placement::Share();
}

ResourceClaim claim_to_make(const Pod& pod, const ClaimSpec& spec) {
  ResourceClaim claim{
      .uid = uid_to_come(pod.uid), .name_space = pod.name_space, .name = uid_to_come(pod.uid)};
  claim.owner_uid = pod.uid;
  claim.for_extended_resources = true;
  claim.spec = std::make_shared<const ClaimSpec>(spec);
  return claim;
}

}  // namespace

bool Scheduler::lets_admins(const std::string& name_space) const {
  const auto found = cluster_.namespaces().find(name_space);
  if (found == cluster_.namespaces().end()) return false;
  const auto* const value = label(found->second, kAdminLabel);
  return value != nullptr && *value == "true";
}

void Scheduler::put_slice(ResourceSlice slice) {
  changed_ = taints_changed_ = true;
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
  if (options_.version < kWithExtendedResources) return;
  change_cluster(
      [&](Cluster& cluster) { cluster.put_device_class(device_class.name, device_class.extended_resource); });
}

void Scheduler::remove_device_class(const std::string& name) {
  claims_.remove_class(name);
  change_cluster([&](Cluster& cluster) { cluster.remove_device_class(name); });
}

void Scheduler::put_taint_rule(const DeviceTaintRule& rule) {
  changed_ = taints_changed_ = true;
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
    // What was written earlier and taken back since may be told late.
    if (claim.allocation && have_the_same(*decided->second.now.allocation, *claim.allocation)) {
      decided_claims_.erase(decided);
    } else {
      auto told = std::exchange(claim, decided->second.now);
      decided->second.told = std::move(told);
    }
  }
  if (claim.for_extended_resources && claim.allocation) {
    const auto* const before = claims_.pools().claim(uid);
    if (const auto made = decided_claims_.find(uid_to_come(claim.owner_uid));
        made != decided_claims_.end() && have_the_same(*made->second.now.allocation, *claim.allocation))
      drop_claim(std::string(made->first));
    else if (before == nullptr || !before->allocation)
      taints_changed_ = true;
  }
  std::set<std::string> left;
  auto nodes = claims_.nodes_of(claim);
  if (const auto* const before = claims_.pools().claim(uid)) {
    for (const auto& user : before->reserved_for)
      if (!is_reserved_for(claim, user.uid)) left.insert(user.uid);
    nodes.merge(claims_.nodes_of(*before));
  }
  for (const auto& user : left) note_undone(user);
  claims_.put_claim(std::move(claim));
  follow_claim(uid);
  count_anew(left);
  for (const auto& node : nodes) put_places(node);
}

/// Of pods with a node, whose claims are others than before.
void Scheduler::count_anew(const std::set<std::string>& uids) {
  for (const auto& uid : uids)
    if (const auto found = pods_.find(uid); found != pods_.end() && !found->second.node.empty())
      bound_.put(uid, bound_pod(found->second));
}

void Scheduler::remove_claim(const std::string& uid) {
  changed_ = true;
  if (const auto* const claim = claims_.pools().claim(uid); claim != nullptr && claim->for_extended_resources)
    if (owner_of(*claim) != nullptr) note_undone(claim->owner_uid);
  const auto* const claim = claims_.pools().claim(uid);
  const auto nodes = claim == nullptr ? std::set<std::string>() : claims_.nodes_of(*claim);
  drop_claim(uid);
  for (const auto& node : nodes) put_places(node);
}

void Scheduler::drop_claim(const std::string& uid) {
  decided_claims_.erase(uid);
  std::set<std::string> users;
  if (const auto* const claim = claims_.pools().claim(uid); claim != nullptr && claim->owner_uid.empty())
    for (auto& user : users_of(*claim)) users.insert(std::move(user));
  claims_.remove_claim(uid);
  bound_.remove(claim_job(uid));
  count_anew(users);
}

/// False when there is none.
bool Scheduler::drop_claim_to_come(const std::string& pod_uid) {
  const auto uid = uid_to_come(pod_uid);
  if (!decided_claims_.contains(uid)) return false;
  drop_claim(uid);
  return true;
}

/// What claims give it: those that were made for it alone, and the one that it has in common with others.
std::vector<placement::Grant> Scheduler::claimed_gpus(const Known& known) const {
  std::vector<placement::Grant> grants;
  const auto add = [&](const ResourceClaim& claim) {
    if (claim.allocation) std::ranges::move(claims_.grants_of(*claim.allocation), std::back_inserter(grants));
  };
  const auto& pod = known.object.pod;
  for (const auto& reference : pod.claims) {
    const auto* const claim = claims_.pools().claim(pod.name_space, reference.claim);
    if (claim != nullptr && claim->owner_uid == pod.uid) add(*claim);
  }
  if (const auto* const common = common_claim(known); common != nullptr && is_reserved_for(*common, pod.uid))
    add(*common);
  for (const auto* claim : claims_.made_for(pod)) add(*claim);
  return grants;
}

/// UUIDs of the GPUs of all of its claims.
std::vector<std::string> Scheduler::gpus_of_claims(const Pod& pod) const {
  std::vector<std::string> uuids;
  const auto add = [&](const ResourceClaim* claim) {
    if (claim != nullptr && claim->allocation)
      std::ranges::move(claims_.gpus_of(*claim->allocation), std::back_inserter(uuids));
  };
  for (const auto& reference : pod.claims) add(claims_.pools().claim(pod.name_space, reference.claim));
  for (const auto* claim : claims_.made_for(pod)) add(claim);
  return uuids;
}

/// The one that gives it all its GPUs, and may give them to other pods too; nullptr where it is not so plain.
const ResourceClaim* Scheduler::common_claim(const Known& known) const {
  const auto& pod = known.object.pod;
  if (pod.claims.size() != 1 || known.demand.gpu_count() > 0 || known.queued) return nullptr;
  const auto* const claim = claims_.pools().claim(pod.name_space, pod.claims.front().claim);
  return claim != nullptr && claim->owner_uid.empty() ? claim : nullptr;
}

/// As placement counts what several have together: once, and where the first of them is.
placement::Request Scheduler::demand_of_common(placement::Request demand, const ResourceClaim& claim) const {
  if (claim.allocation) {
    const auto grants = claims_.grants_of(*claim.allocation);
    if (grants.empty()) return demand;
    demand.gpus = {{static_cast<int>(grants.size()), {}}};
    demand.share = share_of(grants);
  }
  if (demand.gpu_count() > 0) demand.group = claim_job(claim.uid);
  return demand;
}

/// Of a pod that has these.
placement::Request Scheduler::demand_with(const Known& known,
                                          const std::vector<placement::Grant>& gpus) const {
  auto demand = counted(known.demand, static_cast<int>(gpus.size()));
  demand.share = share_of(gpus);
  if (const auto* const common = common_claim(known); common != nullptr && !gpus.empty())
    demand.group = claim_job(common->uid);
  return demand;
}

/// The uids of pods with a node that have it in common.
std::vector<std::string> Scheduler::users_of(const ResourceClaim& claim) const {
  std::vector<std::string> uids;
  for (const auto& user : claim.reserved_for)
    if (const auto pod = pods_.find(user.uid);
        pod != pods_.end() && !pod->second.node.empty() && common_claim(pod->second) == &claim)
      uids.push_back(user.uid);
  return uids;
}

/// Those that a claim gives it for them are the claim's.
int Scheduler::gpus_by_limits(const Known& known) const {
  const auto& pod = known.object.pod;
  for (const auto* claim : claims_.made_for(pod))
    if (claim->allocation && gives(*claim->spec, pod.made_from->containers, options_.gpu_resource)) return 0;
  return known.demand.gpu_count();
}

/// nullptr when it is not known. Whoever makes a claim may name any owner, and has none in another namespace.
Scheduler::Known* Scheduler::owner_of(const ResourceClaim& claim) {
  const auto found = pods_.find(claim.owner_uid);
  const bool is_owner = found != pods_.end() && found->second.object.pod.name_space == claim.name_space;
  return is_owner ? &found->second : nullptr;
}

void Scheduler::follow_claims(const Pod& pod) {
  for (const auto* claim : claims_.made_for(pod)) follow_claim(std::string(claim->uid));
  for (const auto& reference : pod.claims)
    if (const auto* const claim = claims_.pools().claim(pod.name_space, reference.claim))
      follow_claim(std::string(claim->uid));
}

/// A device is free when its claim is deallocated, not when a pod ends: until then it is the claim's.
void Scheduler::follow_claim(const std::string& uid) {
  const auto* const claim = claims_.pools().claim(uid);
  auto* const owner = claim == nullptr ? nullptr : owner_of(*claim);
  if (owner != nullptr && !owner->node.empty()) {
    bound_.remove(claim_job(uid));
    const bool expected = owner->queued && owner->decided;
    if (!expected && gpus_by_limits(*owner) == 0) {
      owner->gpus.clear();
      without_gpus_.erase(claim->owner_uid);
    }
    bound_.put(claim->owner_uid, bound_pod(*owner));
    return;
  }
  auto gpus = claim == nullptr || !claim->allocation ? std::vector<placement::Grant>()
                                                     : claims_.grants_of(*claim->allocation);
  if (claim != nullptr && claim->owner_uid.empty()) {
    const auto users = users_of(*claim);
    for (const auto& user : users) bound_.put(user, bound_pod(pods_.at(user)));
    if (!users.empty()) gpus.clear();  // as long as one of them has it, it has the GPUs
  }
  if (gpus.empty()) return bound_.remove(claim_job(uid));
  BoundPod holder;
  holder.job.id = claim_job(uid);
  holder.demand.gpus = {{static_cast<int>(gpus.size()), {}}};
  holder.demand.share = share_of(gpus);
  holder.demand.group = claim_job(uid);
  holder.decision.node = claims_.node_of(gpus.front().uuid);
  holder.decision.gpus = std::move(gpus);
  holder.ours = false;
  bound_.put(claim_job(uid), std::move(holder));
}

/// Those of its own, and the one that is to be made for it.
Result<ClaimBook::Claims> Scheduler::claims_to_give(const Pod& pod, const ResourceClaim* made) const {
  DROVER_TRY(auto claims, claims_.claims_of(pod));
  if (made != nullptr) claims.push_back(made);
  return claims;
}

/// Decides what is written into its claims. Of `gpus`, which placement has chosen for all, those that claims
/// do not take are left for its limits.
bool Scheduler::take_claims(Known& known, const NodeState& node, std::vector<placement::Grant>& gpus) {
  const auto& pod = known.object.pod;
  known.claims.clear();
  auto made = claims_.claim_for(*pod.made_from, *node.node);
  if (pod.claims.empty() && !made) return true;
  ResourceClaim to_make;
  if (made) to_make = claim_to_make(pod, made->spec);
  const auto claims = claims_to_give(pod, made ? &to_make : nullptr);
  if (!claims) return false;
  const auto is_elsewhere = [&](const ResourceClaim* claim) {
    return claim->allocation && !is_available_on(*claim->allocation, *node.node);
  };
  if (std::ranges::any_of(*claims, is_elsewhere)) return false;
  std::vector<std::string> wished;
  for (const auto& grant : gpus) wished.push_back(grant.uuid);
  const auto allocated = claims_.allocate(*node.node, *claims, wished, lets_admins(pod.name_space));
  if (!allocated || !allocated->fits()) return false;
  const auto is_wished = [&](const auto& uuid) { return std::ranges::find(wished, uuid) != wished.end(); };
  // Claims know nothing of what an annotation says: placement does.
  if (is_particular(known.demand) || known.of_claims)
    for (const auto& allocation : allocated->allocations)
      if (!std::ranges::all_of(claims_.gpus_of(allocation), is_wished)) return false;
  std::size_t next = 0;
  std::vector<ResourceClaim> changed;
  for (const auto* claim : *claims) {
    auto copy = *claim;
    ClaimDecision decision{claim->uid, claim->name_space, claim->name, std::nullopt};
    if (!copy.allocation) {
      decision.allocation = allocated->allocations.at(next++);
      decision.as_read = claim->as_read;
      copy.allocation = shared(*decision.allocation);
      const auto taken = claims_.gpus_of(*copy.allocation);
      improvised_ = improvised_ || !std::ranges::all_of(taken, is_wished);
      std::erase_if(gpus,
                    [&](const auto& grant) { return std::ranges::find(taken, grant.uuid) != taken.end(); });
    }
    copy.reserved_for.push_back({"pods", pod.name, pod.uid});
    known.claims.push_back(std::move(decision));
    changed.push_back(std::move(copy));
  }
  if (made) {
    known.claims.back().name.clear();
    known.claims.back().made = std::move(made);
  }
  for (auto& claim : changed) {
    const auto* const told = claims_.pools().claim(claim.uid);
    auto& decided =
        decided_claims_.try_emplace(claim.uid, claim, told == nullptr ? claim : *told).first->second;
    decided.now = claim;
    claims_.put_claim(std::move(claim));
  }
  gpus.resize(std::min(gpus.size(), static_cast<std::size_t>(gpus_by_limits(known))));
  return true;
}

/// For claims like the pod's, in this round.
bool Scheduler::had_nothing(const Known& known, const std::string& node) {
  const auto& pod = known.object.pod;
  if (pod.claims.empty() || known.queued || claims_.may_need_claim(*pod.made_from)) return false;
  const auto claims = claims_.claims_of(pod);
  return claims && claims_.refusals(*claims, lets_admins(pod.name_space)).contains(node);
}

void Scheduler::give_back_claims(Known& known, bool stand) {
  claims_.look_again();
  for (const auto& decision : std::exchange(known.claims, {})) {
    if (!decided_claims_.contains(decision.uid) || stand) continue;  // the API server has it, or may have it
    if (decision.made)
      drop_claim(decision.uid);
    else
      forget_decided(decision.uid, known.object.pod.uid);
  }
}

/// What was decided of the claim for that pod is not done. As far as it was for others too, it stands.
void Scheduler::forget_decided(const std::string& claim_uid, const std::string& pod_uid) {
  const auto found = decided_claims_.find(claim_uid);
  if (found == decided_claims_.end()) return;
  const auto is_its = [&](const ClaimConsumer& user) { return user.uid == pod_uid; };
  const auto is_decided = [&](const ClaimConsumer& user) {
    const auto pod = pods_.find(user.uid);
    return pod != pods_.end() && !pod->second.node.empty();
  };
  auto& decided = found->second;
  std::erase_if(decided.now.reserved_for, is_its);
  std::erase_if(decided.told.reserved_for, is_its);
  if (std::ranges::any_of(decided.now.reserved_for, is_decided)) return claims_.put_claim(decided.now);
  claims_.put_claim(std::move(decided.told));
  decided_claims_.erase(found);
}

}  // namespace drover::kube::scheduler

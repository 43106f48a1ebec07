#include "kube/usage/pod_shares.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "gpu/share_tier.h"

namespace drover::kube {
namespace {

bool has_claim(const ContainerUse& use, const dra::ClaimReference& claim, const ClaimNames& names) {
  return use.pod_namespace == claim.namespace_name && std::ranges::any_of(use.claims, [&](const auto& each) {
           return each.driver == names.driver && each.pool == names.pool && each.claim == claim.name;
         });
}

bool is_of(const RunningContainer& running, const auto& named) {
  return std::tie(running.pod_namespace, running.pod, running.container) ==
         std::tie(named.pod_namespace, named.pod, named.container);
}

PodShare share_of(const dra::ClaimShare& claim, const ClaimNames& names,
                  const std::vector<ContainerUse>& uses, const std::vector<RunningContainer>& running) {
  PodShare share{.name = claim.claim.uid, .limits = claim.limits, .pages = claim.pages};
  share.about = {.api_version = "resource.k8s.io/v1",
                 .kind = "ResourceClaim",
                 .name_space = claim.claim.namespace_name,
                 .name = claim.claim.name,
                 .uid = claim.claim.uid};
  for (const auto& use : uses) {
    if (!has_claim(use, claim.claim, names)) continue;
    for (const auto& each : running)
      if (is_of(each, use)) share.containers.insert(each.id);
  }
  return share;
}

/// Of a replica: those have it that `has` says.
template <typename Has>
PodShare share_of(PodShare share, const std::vector<RunningContainer>& running, const Has& has) {
  for (const auto& each : running) {
    if (!has(each)) continue;
    share.containers.insert(each.id);
    share.about = {.kind = "Pod", .name_space = each.pod_namespace, .name = each.pod, .uid = each.pod_uid};
  }
  return share;
}

/// Of allowances of one GPU that have a container in common, none but the guarded one can be told.
void drop_ambiguous(std::vector<share::Allowance>& allowances) {
  std::map<std::pair<std::string, std::string>, int> claims;  // by GPU and container
  for (const auto& allowance : allowances)
    for (const auto& id : allowance.tasks) ++claims[{allowance.gpu, id}];
  std::erase_if(allowances, [&](const share::Allowance& allowance) {
    return allowance.tier != gpu::kGuarded && std::ranges::any_of(allowance.tasks, [&](const auto& id) {
             return claims[{allowance.gpu, id}] > 1;
           });
  });
}

}  // namespace

std::vector<PodShare> pod_shares(const NodeShares& shares, const ClaimNames& names,
                                 const std::vector<RunningContainer>& running) {
  std::vector<PodShare> all;
  for (const auto& claim : shares.claims) all.push_back(share_of(claim, names, shares.uses, running));
  for (const auto& replica : shares.guarded)
    all.push_back(share_of({.name = replica.name, .limits = {replica.limit}, .pages = replica.pages}, running,
                           [&](const RunningContainer& each) { return each.replica == replica.name; }));
  for (const auto& replica : shares.unsure) {
    auto counted =
        share_of({.name = replica.id, .limits = {replica.limit}}, running,
                 [&](const RunningContainer& each) { return each.replica.empty() && is_of(each, replica); });
    if (!counted.containers.empty()) all.push_back(std::move(counted));
  }
  return all;
}

share::Shares watched_shares(const gpu::Inventory& inventory, const std::vector<PodShare>& pods,
                             const std::vector<RunningContainer>& running) {
  share::Shares shares;
  std::set<std::string> gpus;
  for (const auto& share : pods) {
    for (const auto& limit : share.limits) {
      gpus.insert(limit.gpu);
      shares.allowances.push_back({.gpu = limit.gpu,
                                   .name = share.name,
                                   .tasks = share.containers,
                                   .bytes = limit.bytes,
                                   .tier = std::string(share.pages.empty() ? gpu::kCounted : gpu::kGuarded)});
    }
    if (!share.pages.empty()) shares.guarded[share.name] = {share.pages};
  }
  drop_ambiguous(shares.allowances);
  for (const auto& device : inventory.devices)
    if (gpus.contains(device.uuid)) shares.gpus.push_back(device);
  shares.owners = [running] { return container_by_cgroup(running); };
  return shares;
}

}  // namespace drover::kube

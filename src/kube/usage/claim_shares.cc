#include "kube/usage/claim_shares.h"

#include <algorithm>
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

/// Ids of the containers that have the claim.
std::set<std::string> containers_of(const dra::ClaimReference& claim, const ClaimNames& names,
                                    const std::vector<ContainerUse>& uses,
                                    const std::vector<RunningContainer>& running) {
  std::set<std::string> ids;
  for (const auto& use : uses) {
    if (!has_claim(use, claim, names)) continue;
    for (const auto& each : running)
      if (std::tie(each.pod_namespace, each.pod, each.container) ==
          std::tie(use.pod_namespace, use.pod, use.container))
        ids.insert(each.id);
  }
  return ids;
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

share::Shares shares_of(const gpu::Inventory& inventory, const std::vector<dra::ClaimShare>& claims,
                        const ClaimNames& names, const std::vector<ContainerUse>& uses,
                        const std::vector<RunningContainer>& running) {
  share::Shares shares;
  std::set<std::string> gpus;
  for (const auto& [claim, limits, pages] : claims) {
    const auto containers = containers_of(claim, names, uses, running);
    for (const auto& limit : limits) {
      gpus.insert(limit.gpu);
      shares.allowances.push_back({.gpu = limit.gpu,
                                   .name = claim.uid,
                                   .tasks = containers,
                                   .bytes = limit.bytes,
                                   .tier = std::string(pages.empty() ? gpu::kCounted : gpu::kGuarded)});
    }
    if (!pages.empty()) shares.guarded[claim.uid] = {pages};
  }
  drop_ambiguous(shares.allowances);
  for (const auto& device : inventory.devices)
    if (gpus.contains(device.uuid)) shares.gpus.push_back(device);
  shares.owners = [running] { return container_by_cgroup(running); };
  return shares;
}

}  // namespace drover::kube

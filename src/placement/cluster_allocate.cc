#include <fmt/format.h>

#include <algorithm>

#include "placement/cluster_impl.h"
#include "placement/part_fit.h"

namespace drover::placement {
namespace {

Failure taken(std::string what) {
  return fail(ErrorKind::kConflict, std::move(what), "place the request again");
}

Status check_grants(const NodeEntry& entry, const Decision& decision) {
  DeviceMask seen = 0;
  auto with_parts = entry.state;
  for (const auto& grant : decision.gpus) {
    const auto device = entry.device(grant.uuid);
    if (!device) return taken(fmt::format("Node '{}' has no GPU '{}'", decision.node, grant.uuid));
    if (grant.mig) {
      const Instance part{grant.mig->profile_id, grant.mig->placement};
      if (!part_is_free(with_parts, *entry.node, *device, part))
        return taken(fmt::format("A part of GPU '{}' of node '{}' is not free", grant.uuid, decision.node));
      take_part(with_parts, TakenPart{*device, part});
      continue;
    }
    const auto& state = entry.state.devices[static_cast<std::size_t>(*device)];
    if (grant.milli < 0 || grant.milli > state.free_milli || (seen & device_bit(*device)) != 0 ||
        grant.memory_bytes > static_cast<std::uint64_t>(std::max<std::int64_t>(0, state.free_memory)))
      return taken(fmt::format("GPU '{}' of node '{}' is not free", grant.uuid, decision.node));
    seen |= device_bit(*device);
  }
  return {};
}

Status check_host(const NodeEntry& entry, const Request& request, const Decision& decision) {
  const auto& state = entry.state;
  if (const auto found = host_obstacle(state, request))
    return taken(fmt::format("Node '{}' has too {}", decision.node,
                             found->dimension == Dimension::kCpus ? "few free CPUs" : "little free memory"));
  const auto pinned = numa_with_cpus(*entry.kind, decision.cpus);
  if (pinned != 0 && !cpus_suffice(state, request.milli_cpus).test(pinned))
    return taken(fmt::format("The CPUs near the GPUs of node '{}' are not free", decision.node));
  return {};
}

}  // namespace

Status Cluster::Impl::check(const std::string& id, const Request& request, const Decision& decision) const {
  if (ledger.find(id) != nullptr)
    return fail(ErrorKind::kConflict, fmt::format("'{}' is allocated already", id));
  const auto* entry = find(decision.node);
  if (entry == nullptr) return taken(fmt::format("There is no node '{}'", decision.node));
  const auto* group = ledger.group(request.group);
  if (group == nullptr) {
    DROVER_CHECK_OK(check_grants(*entry, decision));
  } else if (group->node != decision.node || group->gpus != decision.gpus) {
    return taken(fmt::format("Group '{}' has other GPUs", request.group));
  }
  return check_host(*entry, request, decision);
}

void Cluster::Impl::add(const std::string& id, const Request& request, const Decision& decision) {
  const bool gpus = ledger.add(id, request, decision);
  if (const auto slot = nodes.find(decision.node))
    nodes.change(*slot, [&](NodeEntry& entry) { charge(entry, *ledger.find(id), gpus, 1); });
  else
    awaited.mutate().insert(decision.node);
  if (learning && context.policy == NodePolicy::kFragmentation) context.fragmentation.note_placed(request);
}

void Cluster::Impl::remove(const std::string& id) {
  const auto removed = ledger.remove(id);
  if (const auto slot = nodes.find(removed.allocation->decision.node))
    nodes.change(*slot,
                 [&](NodeEntry& entry) { charge(entry, *removed.allocation, removed.frees_gpus, -1); });
}

}  // namespace drover::placement

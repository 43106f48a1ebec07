#include "placement/ledger.h"

#include <utility>

namespace drover::placement {

const Allocation* Ledger::find(const std::string& id) const {
  const auto& shard = const_cast<Ledger*>(this)->shard(id);
  if (!shard) return nullptr;
  const auto found = shard->find(id);
  return found == shard->end() ? nullptr : found->second.get();
}

const Group* Ledger::group(const std::string& name) const {
  if (name.empty() || !groups_) return nullptr;
  const auto found = groups_->find(name);
  return found == groups_->end() ? nullptr : &found->second;
}

bool Ledger::add(const std::string& id, const Request& request, const Decision& decision) {
  const auto* found = group(request.group);
  const bool joins = found != nullptr && found->node == decision.node && found->gpus == decision.gpus;
  const auto name = found == nullptr || joins ? request.group : "";
  shard(id).mutate().emplace(id, std::make_shared<const Allocation>(
                                     Allocation{decision, request.milli_cpus, request.memory_bytes, name}));
  if (name.empty()) return true;
  auto& group = groups_.mutate()[name];
  if (group.members++ == 0)
    group = {decision.node, decision.gpus, request.gpus, request.share, request.by_mps(), 1};
  return !joins;
}

Ledger::Removed Ledger::remove(const std::string& id) {
  Removed removed{std::move(shard(id).mutate().extract(id).mapped()), true};
  const auto& name = removed.allocation->group;
  if (name.empty()) return removed;
  auto& groups = groups_.mutate();
  const auto group = groups.find(name);
  removed.frees_gpus = --group->second.members == 0;
  if (removed.frees_gpus) groups.erase(group);
  return removed;
}

}  // namespace drover::placement

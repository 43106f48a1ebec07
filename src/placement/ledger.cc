#include "placement/ledger.h"

#include <utility>

namespace drover::placement {

const Allocation* Ledger::find(const std::string& id) const {
  const auto found = allocations_.find(id);
  return found == allocations_.end() ? nullptr : &found->second;
}

const Group* Ledger::group(const std::string& name) const {
  const auto found = groups_.find(name);
  return name.empty() || found == groups_.end() ? nullptr : &found->second;
}

bool Ledger::add(const std::string& id, const Request& request, const Decision& decision) {
  allocations_.emplace(id, Allocation{decision, request.milli_cpus, request.memory_bytes, request.group});
  if (request.group.empty()) return true;
  auto& group = groups_[request.group];
  if (group.members++ > 0) return false;
  group.node = decision.node;
  group.gpus = decision.gpus;
  group.claims = request.gpus;
  group.share = request.share;
  return true;
}

Ledger::Removed Ledger::remove(const std::string& id) {
  Removed removed{std::move(allocations_.extract(id).mapped()), true};
  const auto group = groups_.find(removed.allocation.group);
  if (removed.allocation.group.empty() || group == groups_.end()) return removed;
  removed.frees_gpus = --group->second.members == 0;
  if (removed.frees_gpus) groups_.erase(group);
  return removed;
}

}  // namespace drover::placement

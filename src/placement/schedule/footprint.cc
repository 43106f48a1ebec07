#include "placement/schedule/footprint.h"

#include <algorithm>
#include <set>

namespace drover::placement::schedule {

void add(Footprint& sum, const Footprint& other, int sign) {
  for (const auto& [uuid, part] : other.gpus) {
    auto& mine = sum.gpus[uuid];
    mine.milli += sign * part.milli;
    mine.memory_bytes += sign * part.memory_bytes;
  }
  for (const auto& [part, count] : other.parts) sum.parts[part] += sign * count;
  for (const auto& [cpus, milli] : other.pinned) sum.pinned[cpus] += sign * milli;
  sum.milli_cpus += sign * other.milli_cpus;
  sum.memory_bytes += sign * other.memory_bytes;
}

Footprint highest(const Footprint& a, const Footprint& b) {
  Footprint result;
  for (const auto* from : {&a, &b}) {
    for (const auto& [uuid, part] : from->gpus) {
      auto& mine = result.gpus[uuid];
      mine.milli = std::max(mine.milli, part.milli);
      mine.memory_bytes = std::max(mine.memory_bytes, part.memory_bytes);
    }
    for (const auto& [part, count] : from->parts) result.parts[part] = std::max(result.parts[part], count);
    for (const auto& [cpus, milli] : from->pinned) result.pinned[cpus] = std::max(result.pinned[cpus], milli);
  }
  result.milli_cpus = std::max(a.milli_cpus, b.milli_cpus);
  result.memory_bytes = std::max(a.memory_bytes, b.memory_bytes);
  return result;
}

std::map<std::string, Footprint> footprints(const Gang& gang, const std::vector<Decision>& decisions) {
  std::map<std::string, Footprint> result;
  std::set<std::string> groups;
  for (std::size_t rank = 0; rank < decisions.size(); ++rank) {
    const auto& request = gang.members[rank];
    const auto& decision = decisions[rank];
    auto& footprint = result[decision.node];
    footprint.milli_cpus += request.milli_cpus;
    footprint.memory_bytes += static_cast<std::int64_t>(request.memory_bytes);
    if (!decision.cpus.empty()) footprint.pinned[decision.cpus] += request.milli_cpus;
    if (!request.group.empty() && !groups.insert(request.group).second) continue;
    for (const auto& grant : decision.gpus) {
      auto& part = footprint.gpus[grant.uuid];
      part.milli += grant.milli;
      part.memory_bytes += static_cast<std::int64_t>(grant.memory_bytes);
      if (grant.mig) ++footprint.parts[{grant.uuid, {grant.mig->profile_id, grant.mig->placement}}];
    }
  }
  return result;
}

std::vector<std::pair<Request, Decision>> as_allocations(const std::string& node,
                                                         const Footprint& footprint) {
  Request rest;
  Decision unpinned{.node = node};
  for (const auto& [uuid, part] : footprint.gpus)
    if (part.milli > 0 || part.memory_bytes > 0)
      unpinned.gpus.push_back({uuid, static_cast<int>(std::max<std::int64_t>(part.milli, 0)),
                               static_cast<std::uint64_t>(std::max<std::int64_t>(part.memory_bytes, 0))});
  for (const auto& [part, count] : footprint.parts)
    if (count > 0)
      unpinned.gpus.push_back({.uuid = part.first,
                               .milli = 0,
                               .mig = MigGrant{"", part.second.profile_id, part.second.placement}});
  rest.memory_bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(footprint.memory_bytes, 0));
  rest.milli_cpus = std::max<std::int64_t>(footprint.milli_cpus, 0);

  std::vector<std::pair<Request, Decision>> result;
  for (const auto& [cpus, milli] : footprint.pinned) {
    if (milli <= 0) continue;
    Request request;
    request.milli_cpus = milli;
    rest.milli_cpus = std::max<std::int64_t>(0, rest.milli_cpus - milli);
    result.emplace_back(request, Decision{.node = node, .gpus = {}, .cpus = cpus, .nics = {}});
  }
  if (!unpinned.gpus.empty() || rest.milli_cpus > 0 || rest.memory_bytes > 0)
    result.emplace_back(rest, unpinned);
  return result;
}

}  // namespace drover::placement::schedule

#include "kube/dra/groups.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace drover::kube::dra {
namespace {

struct Group {
  std::vector<int> members;
  long strength = 0;  ///< of all joints

  bool better_than(const Group& other) const {
    return std::pair(members.size(), strength) > std::pair(other.members.size(), other.strength);
  }
};

/// Adds whoever is joined with all, in order.
Group grown_from(int a, int b, const std::set<int>& free, const Joined& joined) {
  Group group{{a, b}, joined(a, b)};
  for (const int next : free) {
    if (next == a || next == b) continue;
    if (!std::ranges::all_of(group.members, [&](int member) { return joined(next, member) > 0; })) continue;
    for (const int member : group.members) group.strength += joined(next, member);
    group.members.push_back(next);
  }
  std::ranges::sort(group.members);
  return group;
}

using Pairs = std::set<std::pair<int, int>>;

std::optional<Group> best_group(const Pairs& wanted, const std::set<int>& free, const Joined& joined) {
  std::optional<Group> best;
  for (const auto& [a, b] : wanted) {
    if (!free.contains(a) || !free.contains(b)) continue;
    auto group = grown_from(a, b, free, joined);
    if (!best || group.better_than(*best)) best = std::move(group);
  }
  return best;
}

}  // namespace

std::vector<Partition> joined_groups(int devices, const Joined& joined, int most) {
  std::set<int> all;
  Pairs wanted;
  for (int a = 0; a < devices; ++a) {
    all.insert(a);
    for (int b = a + 1; b < devices; ++b)
      if (joined(a, b) > 0) wanted.emplace(a, b);
  }
  std::vector<Partition> partitions;
  while (!wanted.empty() && static_cast<int>(partitions.size()) < most) {
    Partition partition(static_cast<std::size_t>(devices));
    auto free = all;
    while (const auto group = best_group(wanted, free, joined)) {
      for (const int member : group->members) {
        partition[static_cast<std::size_t>(member)] = group->members;
        free.erase(member);
        for (const int other : group->members) wanted.erase({member, other});
      }
    }
    partitions.push_back(std::move(partition));
  }
  return partitions;
}

}  // namespace drover::kube::dra

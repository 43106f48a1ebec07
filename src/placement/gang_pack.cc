#include <algorithm>

#include "placement/gang_search.h"

namespace drover::placement {
namespace {

constexpr int kMostMeasured = 32;  ///< nodes, for the one that the rest of a packed gang fits best

struct Capacity {
  std::size_t order = 0;  ///< among the nodes that fit, best first
  std::size_t members = 0;
};

class Packing {
 public:
  Packing(Cluster& cluster, Trial& trial, const std::vector<std::string>& nodes, const MemberClass& members)
      : cluster_(cluster),
        trial_(trial),
        nodes_(nodes),
        members_(members),
        fitting_(cluster.fitting_positions(*members.request)) {
    for (std::size_t i = 0; i < fitting_.size(); ++i)
      at_most_.push_back({i, most_on(cluster.free(name(i)), *members.request, members.ranks.size())});
    std::ranges::sort(at_most_, {}, rank_of);
  }

  void put() {
    auto chosen = fewest_nodes();
    std::ranges::sort(chosen, {}, [&](const Capacity& node) { return fitting_[node.order]; });
    auto rank = members_.ranks.begin();
    for (const auto& node : chosen)
      for (std::size_t i = 0; i < node.members; ++i)
        trial_.put_on(name(node.order), *rank++, *members_.request);
  }

 private:
  const std::string& name(std::size_t order) const { return nodes_[fitting_[order]]; }

  /// Largest first.
  static std::pair<std::size_t, std::size_t> rank_of(const Capacity& node) {
    return {~node.members, node.order};
  }

  /// How many on which nodes; together less than all when there is no room for all.
  std::vector<Capacity> fewest_nodes() {
    auto rest = members_.ranks.size();
    std::vector<Capacity> measured;
    for (const auto& [order, most] : at_most_) {
      if (enough(measured, most)) break;
      const Capacity node{order, measure(order)};
      measured.insert(std::ranges::upper_bound(measured, rank_of(node), {}, rank_of), node);
    }
    std::vector<Capacity> chosen;
    for (const auto& node : measured) {
      if (rest == 0 || node.members == 0) break;
      chosen.push_back({node.order, std::min(rest, node.members)});
      rest -= chosen.back().members;
    }
    if (rest == 0) fit_last(chosen);
    return chosen;
  }

  /// Whether the largest that were measured do, and nodes with room for no more than `most` cannot make it
  /// fewer.
  bool enough(const std::vector<Capacity>& measured, std::size_t most) const {
    std::size_t sum = 0;
    for (const auto& node : measured) {
      if (node.members < most) return false;
      sum += node.members;
      if (sum >= members_.ranks.size()) return true;
    }
    return false;
  }

  std::size_t measure(std::size_t order) {
    for (const auto rank : members_.ranks)
      if (!trial_.put_on(name(order), rank, *members_.request)) break;
    const auto members = trial_.placed().size();
    trial_.undo(0);
    return members;
  }

  /// The last node need not have more room than the rest of the members want: the best by the policy will do.
  void fit_last(std::vector<Capacity>& chosen) {
    auto& last = chosen.back();
    int measured = 0;
    for (std::size_t order = 0; order < last.order && measured < kMostMeasured; ++order) {
      if (std::ranges::find(chosen, order, &Capacity::order) != chosen.end()) continue;
      if (most_on(cluster_.free(name(order)), *members_.request, last.members) < last.members) continue;
      ++measured;
      if (measure(order) < last.members) continue;
      last.order = order;
      return;
    }
  }

  Cluster& cluster_;
  Trial& trial_;
  const std::vector<std::string>& nodes_;
  const MemberClass& members_;
  std::vector<std::size_t> fitting_;
  std::vector<Capacity> at_most_;
};

}  // namespace

void put_packed(Cluster& cluster, Trial& trial, const std::vector<std::string>& nodes,
                const MemberClass& members) {
  Packing(cluster, trial, nodes, members).put();
}

}  // namespace drover::placement

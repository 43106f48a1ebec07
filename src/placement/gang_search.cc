#include "placement/gang_search.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>
#include <unordered_map>

#include "placement/gang_trial.h"
#include "placement/request_hash.h"

namespace drover::placement {
namespace {

constexpr int kMostTrials = 4000;
constexpr int kMostMeasured = 32;  ///< nodes, for the one that the rest of a packed gang fits best

/// The members of one class on distinct nodes: augmenting paths over classes, since members of a class are
/// alike.
class Spread {
 public:
  Spread(const std::vector<std::string>& nodes, const std::vector<MemberClass>& classes)
      : holders_(nodes.size(), kNobody) {
    std::unordered_map<std::string, std::size_t> numbers;
    for (std::size_t i = 0; i < nodes.size(); ++i) numbers.emplace(nodes[i], i);
    for (const auto& members : classes) {
      auto& places = places_.emplace_back();
      for (const auto& name : members.fitting) places.push_back(numbers.at(name));
    }
  }

  bool add(std::size_t members) {
    visited_.assign(places_.size(), false);
    return augment(members);
  }

  /// Nodes of a class, in the order of the cluster: neighbouring ranks get neighbours.
  std::vector<std::size_t> held_by(std::size_t members) const {
    std::vector<std::size_t> held;
    for (std::size_t i = 0; i < holders_.size(); ++i)
      if (holders_[i] == members) held.push_back(i);
    return held;
  }

 private:
  static constexpr std::size_t kNobody = std::numeric_limits<std::size_t>::max();

  bool augment(std::size_t members) {
    visited_[members] = true;
    const auto& places = places_[members];
    auto found = std::ranges::find_if(places, [&](std::size_t place) { return holders_[place] == kNobody; });
    if (found == places.end())
      found = std::ranges::find_if(places, [&](std::size_t place) {
        const auto holder = holders_[place];
        return !visited_[holder] && augment(holder);
      });
    if (found == places.end()) return false;
    holders_[*found] = members;
    return true;
  }

  std::vector<std::vector<std::size_t>> places_;  ///< of each class, best first
  std::vector<std::size_t> holders_;              ///< of each node, a class
  std::vector<bool> visited_;
};

GangSearch finish(const Gang& gang, const Trial& trial) {
  GangSearch result{.decisions = std::nullopt, .placed = trial.placed().size()};
  if (result.placed < gang.members.size()) return result;
  result.decisions.emplace(gang.members.size());
  for (const auto& [rank, decision] : trial.placed()) (*result.decisions)[rank] = decision;
  return result;
}

GangSearch spread(Cluster& cluster, const Gang& gang, const std::vector<MemberClass>& classes) {
  const auto nodes = cluster.nodes();
  Spread matching(nodes, classes);
  std::size_t matched = 0;
  for (std::size_t i = 0; i < classes.size(); ++i)
    for (std::size_t count = 0; count < classes[i].ranks.size() && matching.add(i); ++count) ++matched;
  if (matched < gang.members.size()) return {std::nullopt, matched};
  Trial trial(cluster);
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const auto held = matching.held_by(i);
    for (std::size_t j = 0; j < held.size(); ++j)
      trial.put_on(nodes[held[j]], classes[i].ranks[j], *classes[i].request);
  }
  return finish(gang, trial);
}

/// No more than so many of the request fit on what is free.
std::size_t most_on(const Free& free, const Request& request, std::size_t wanted) {
  auto most = static_cast<std::int64_t>(wanted);
  if (request.milli_cpus > 0) most = std::min(most, free.milli_cpus / request.milli_cpus);
  if (request.memory_bytes > 0)
    most = std::min<std::int64_t>(most, static_cast<std::int64_t>(free.memory_bytes / request.memory_bytes));
  const auto gpus = request.gpu_count();
  if (gpus > 0 && request.group.empty() && request.share.memory_bytes == 0)
    most = std::min<std::int64_t>(most, request.share.whole()
                                            ? free.gpus / gpus
                                            : free.gpu_milli / (std::int64_t{request.share.milli} * gpus));
  return static_cast<std::size_t>(most);
}

struct Capacity {
  std::size_t order = 0;  ///< in MemberClass::fitting
  std::size_t members = 0;
};

/// Members that are alike, on the fewest nodes.
class Packing {
 public:
  Packing(Cluster& cluster, const MemberClass& members) : cluster_(cluster), members_(members) {
    for (std::size_t i = 0; i < members.fitting.size(); ++i)
      at_most_.push_back(
          {i, most_on(cluster.free(members.fitting[i]), *members.request, members.ranks.size())});
    std::ranges::sort(at_most_, {}, rank_of);
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

 private:
  /// Largest first.
  static std::pair<std::size_t, std::size_t> rank_of(const Capacity& node) {
    return {~node.members, node.order};
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
    Trial trial(cluster_);
    for (const auto rank : members_.ranks)
      if (!trial.put_on(members_.fitting[order], rank, *members_.request)) break;
    return trial.placed().size();
  }

  /// The last node need not have more room than the rest of the members want: the best by the policy will do.
  void fit_last(std::vector<Capacity>& chosen) {
    auto& last = chosen.back();
    int measured = 0;
    for (std::size_t order = 0; order < last.order && measured < kMostMeasured; ++order) {
      if (std::ranges::find(chosen, order, &Capacity::order) != chosen.end()) continue;
      const auto most = most_on(cluster_.free(members_.fitting[order]), *members_.request, last.members);
      if (most < last.members) continue;
      ++measured;
      if (measure(order) < last.members) continue;
      last.order = order;
      return;
    }
  }

  Cluster& cluster_;
  const MemberClass& members_;
  std::vector<Capacity> at_most_;
};

GangSearch pack_alike(Cluster& cluster, const Gang& gang, const MemberClass& members) {
  auto chosen = Packing(cluster, members).fewest_nodes();
  const auto nodes = cluster.nodes();
  std::unordered_map<std::string, std::size_t> positions;
  for (std::size_t i = 0; i < nodes.size(); ++i) positions.emplace(nodes[i], i);
  std::ranges::sort(chosen, {},
                    [&](const Capacity& node) { return positions.at(members.fitting[node.order]); });
  Trial trial(cluster);
  auto rank = members.ranks.begin();
  for (const auto& node : chosen)
    for (std::size_t i = 0; i < node.members; ++i)
      trial.put_on(members.fitting[node.order], *rank++, *members.request);
  return finish(gang, trial);
}

/// Each class where the classes before it are, when they are to be packed; else where the policy says.
void put_greedily(Trial& trial, const std::vector<MemberClass>& classes, Arrangement arrangement) {
  std::vector<std::string> used;
  for (const auto& members : classes) {
    auto rank = members.ranks.begin();
    const auto fill = [&](const std::string& node) {
      while (rank != members.ranks.end() && trial.put_on(node, *rank, *members.request)) ++rank;
    };
    if (arrangement == Arrangement::kPack)
      for (auto node = used.rbegin(); node != used.rend() && rank != members.ranks.end(); ++node) fill(*node);
    while (rank != members.ranks.end()) {
      if (!trial.put(*rank, *members.request)) return;
      ++rank;
      if (arrangement != Arrangement::kPack) continue;
      used.push_back(trial.placed().back().decision.node);
      fill(used.back());
    }
  }
}

/// Tries places one after the other, and goes back when a member finds none.
class Backtracking {
 public:
  Backtracking(Trial& trial, const std::vector<MemberClass>& classes) : trial_(trial) {
    for (const auto& members : classes)
      for (const auto rank : members.ranks) steps_.push_back({&members, rank});
  }
  bool run() { return place(0, 0); }

 private:
  struct Step {
    const MemberClass* members = nullptr;
    std::size_t rank = 0;
  };

  bool place(std::size_t index, std::size_t from) {
    if (index == steps_.size()) return true;
    const auto& [members, rank] = steps_[index];
    for (auto i = from; i < members->fitting.size() && trials_ < kMostTrials; ++i) {
      ++trials_;
      const auto before = trial_.placed().size();
      if (!trial_.put_on(members->fitting[i], rank, *members->request)) continue;
      // Members that are alike are placed in one order only.
      const bool alike = index + 1 < steps_.size() && steps_[index + 1].members == members;
      if (place(index + 1, alike ? i : 0)) return true;
      trial_.undo(before);
    }
    return false;
  }

  Trial& trial_;
  std::vector<Step> steps_;
  int trials_ = 0;
};

bool any_without_place(const std::vector<MemberClass>& classes) {
  return std::ranges::any_of(classes, [](const MemberClass& members) { return members.fitting.empty(); });
}

}  // namespace

std::vector<MemberClass> member_classes(Cluster& cluster, const Gang& gang) {
  std::vector<MemberClass> classes;
  std::unordered_multimap<std::uint64_t, std::size_t> by_hash;
  for (std::size_t rank = 0; rank < gang.members.size(); ++rank) {
    const auto& request = gang.members[rank];
    const auto hash = hash_of(request);
    auto [known, end] = by_hash.equal_range(hash);
    while (known != end && *classes[known->second].request != request) ++known;
    if (known == end) {
      known = by_hash.emplace(hash, classes.size());
      classes.push_back({&request, {}, cluster.fitting(request)});
    }
    classes[known->second].ranks.push_back(rank);
  }
  std::ranges::sort(classes, {}, [](const MemberClass& members) {
    const auto& request = *members.request;
    const auto milli = request.share.memory_bytes > 0 ? 1000 : request.share.milli;
    return std::tuple(-std::int64_t{milli} * request.gpu_count(), members.fitting.size(), -request.milli_cpus,
                      ~request.memory_bytes, members.ranks.front());
  });
  return classes;
}

GangSearch search(Cluster& cluster, const Gang& gang) {
  const auto classes = member_classes(cluster, gang);
  if (any_without_place(classes)) return {};
  if (gang.arrangement == Arrangement::kSpread) return spread(cluster, gang, classes);
  const bool alike = classes.size() == 1;
  if (alike && gang.arrangement == Arrangement::kPack) return pack_alike(cluster, gang, classes.front());
  Trial trial(cluster);
  put_greedily(trial, classes, gang.arrangement);
  const auto greedy = trial.placed().size();
  if (greedy == gang.members.size() || alike) return finish(gang, trial);
  trial.undo(0);
  if (Backtracking(trial, classes).run()) return finish(gang, trial);
  return {std::nullopt, greedy};
}

}  // namespace drover::placement

#include "placement/gang_search.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <unordered_map>

#include "placement/request_hash.h"

namespace drover::placement {
namespace {

constexpr std::size_t kMostRevisited = 256;  ///< nodes, for the next member of a packed gang

/// The members of all classes on distinct nodes: augmenting paths over classes, since members of a class are
/// alike.
class Spread {
 public:
  Spread(Cluster& cluster, std::size_t nodes, const std::vector<MemberClass>& classes)
      : holders_(nodes, kNobody) {
    for (const auto& members : classes) places_.push_back(cluster.fitting_positions(*members.request));
  }

  bool add(std::size_t members) {
    visited_.assign(places_.size(), false);
    return augment(members);
  }
  /// What was looked at, in all.
  std::uint64_t tried() const { return tried_; }

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
    tried_ += places.size();
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
  std::uint64_t tried_ = 0;
};

GangSearch finish(const Gang& gang, const Trial& trial) {
  GangSearch result{.decisions = std::nullopt, .placed = trial.placed().size()};
  if (result.placed < gang.members.size()) return result;
  result.decisions.emplace(gang.members.size());
  for (const auto& [rank, decision] : trial.placed()) (*result.decisions)[rank] = decision;
  return result;
}

GangSearch spread(Cluster& cluster, const Gang& gang, const std::vector<MemberClass>& classes) {
  constexpr std::uint64_t kMostForCounting = 20'000'000;
  const auto nodes = cluster.nodes();
  Spread matching(cluster, nodes.size(), classes);
  std::size_t matched = 0;
  std::size_t tried = 0;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    std::size_t count = 0;
    while (count < classes[i].ranks.size() && matching.add(i)) ++count;
    matched += count;
    tried += classes[i].ranks.size();
    // There is no place any more; the rest is for telling how many have one.
    if (matched < tried && matching.tried() > kMostForCounting) break;
  }
  if (matched < gang.members.size()) return {std::nullopt, matched, true};
  Trial trial(cluster);
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const auto held = matching.held_by(i);
    for (std::size_t j = 0; j < held.size(); ++j)
      trial.put_on(nodes[held[j]], classes[i].ranks[j], *classes[i].request);
  }
  return finish(gang, trial);
}

/// Each class where the classes before it are, when they are to be packed; else where the policy says.
void put_greedily(Cluster& cluster, Trial& trial, const std::vector<MemberClass>& classes,
                  Arrangement arrangement) {
  std::vector<std::string> used;
  for (const auto& members : classes) {
    auto rank = members.ranks.begin();
    const auto fill = [&](const std::string& node) {
      if (most_on(cluster.free(node), *members.request, 1) == 0) return;
      while (rank != members.ranks.end() && trial.put_on(node, *rank, *members.request)) ++rank;
    };
    const auto last = used.rbegin() + static_cast<std::ptrdiff_t>(std::min(used.size(), kMostRevisited));
    for (auto node = used.rbegin(); node != last && rank != members.ranks.end(); ++node) fill(*node);
    while (rank != members.ranks.end()) {
      if (!trial.put(*rank, *members.request)) return;
      ++rank;
      if (arrangement != Arrangement::kPack) continue;
      used.push_back(trial.placed().back().decision.node);
      fill(used.back());
    }
  }
}

/// Whether members that are alike never stand in each other's way on a node, but by number.
bool countable(const Request& request) {
  if (!request.group.empty() || request.cpu_affinity == Preference::kRequire) return false;
  return request.gpu_count() <= 1 ||
         (request.share.whole() && request.gpus.size() == 1 && !request.interconnect.asks() &&
          !request.different_models && request.capabilities.sets.empty() &&
          request.nic != Preference::kRequire);
}

std::vector<Free> free_of(const Cluster& cluster, const std::vector<std::string>& nodes) {
  std::vector<Free> free;
  free.reserve(nodes.size());
  for (const auto& node : nodes) free.push_back(cluster.free(node));
  return free;
}

/// Members that are alike; those that are hardest to place first.
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
      classes.push_back({&request, {}, cluster.count_fitting(request)});
    }
    classes[known->second].ranks.push_back(rank);
  }
  std::ranges::sort(classes, {}, [](const MemberClass& members) {
    const auto& request = *members.request;
    const auto milli = request.share.memory_bytes > 0 ? 1000 : request.share.milli;
    return std::tuple(-std::int64_t{milli} * request.gpu_count(), members.fitting, -request.milli_cpus,
                      ~request.memory_bytes, members.ranks.front());
  });
  return classes;
}

std::optional<std::size_t> without_place(const std::vector<MemberClass>& classes) {
  std::optional<std::size_t> first;
  for (const auto& members : classes)
    if (members.fitting == 0) first = std::min(first.value_or(members.ranks.front()), members.ranks.front());
  return first;
}

}  // namespace

GangSearch search(Cluster& cluster, const Gang& gang, Effort& effort) {
  const auto classes = member_classes(cluster, gang);
  if (const auto rank = without_place(classes)) return {std::nullopt, 0, true, rank};
  if (gang.arrangement == Arrangement::kSpread) return spread(cluster, gang, classes);
  const auto nodes = cluster.nodes();
  Trial trial(cluster);
  if (classes.size() == 1 && gang.arrangement == Arrangement::kPack)
    put_packed(cluster, trial, nodes, classes.front());
  else
    put_greedily(cluster, trial, classes, gang.arrangement);
  auto result = finish(gang, trial);
  if (result.decisions) return result;
  trial.undo(0);
  result.certain = (classes.size() == 1 && countable(*classes.front().request)) ||
                   exceeds(free_of(cluster, nodes), classes);
  if (result.certain) return result;
  const auto outcome = backtrack(cluster, trial, nodes, classes, effort);
  if (outcome == Outcome::kFound) return finish(gang, trial);
  result.certain = outcome == Outcome::kImpossible;
  return result;
}

}  // namespace drover::placement

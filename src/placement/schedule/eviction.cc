#include "placement/schedule/eviction.h"

#include <algorithm>
#include <map>

#include "placement/schedule/load.h"
#include "placement/schedule/room.h"
#include "placement/schedule/subsets.h"

namespace drover::placement::schedule {
namespace {

/// What helps a request on a node: whole GPUs (or GPUs at all, for shares), thousandths of GPUs, CPUs,
/// memory.
using Help = std::array<std::int64_t, 4>;

struct NodeCandidate {
  std::size_t position = 0;
  Help help{};
};

struct NodeChoice {
  std::string name;
  Help missing{};                     ///< positive where something is
  std::vector<NodeCandidate> useful;  ///< by position
  std::size_t at_least = 0;           ///< so many must go
};

Help help_of(const RunningJob& running, const std::string& node) {
  Help help{};
  for (std::size_t rank = 0; rank < running.decisions.size(); ++rank) {
    const auto& decision = running.decisions[rank];
    if (decision.node != node) continue;
    help[0] += static_cast<std::int64_t>(decision.gpus.size());
    for (const auto& grant : decision.gpus) help[1] += grant.milli;
    help[2] += running.job.gang.members[rank].milli_cpus;
    help[3] += static_cast<std::int64_t>(running.job.gang.members[rank].memory_bytes);
  }
  return help;
}

/// What is short on the node for one container, as far as counting tells. Negative: so much is left.
Help missing_on(const Cluster& world, const std::string& node, const Request& request) {
  const auto free = world.free(node);
  const bool counts = request.group.empty();  // the GPUs of a group may be there already
  const auto gpus = counts ? request.gpu_count() : 0;
  const bool milli = counts && request.share.memory_bytes == 0;
  return {request.share.whole() ? gpus - free.gpus : -1,
          milli ? std::int64_t{gpus} * request.share.milli - free.gpu_milli : -1,
          request.milli_cpus - free.milli_cpus,
          static_cast<std::int64_t>(request.memory_bytes) - static_cast<std::int64_t>(free.memory_bytes)};
}

bool helps(const Help& help, const Help& missing, const Request& request) {
  if (request.gpu_count() > 0 && help[0] > 0) return true;
  const bool near = request.cpu_affinity == Preference::kRequire;
  return (help[2] > 0 && (near || missing[2] > 0)) || (help[3] > 0 && missing[3] > 0);
}

/// So many of the most helpful must go at least; more than there are when even all are too few.
std::size_t least(const std::vector<NodeCandidate>& candidates, const Help& missing) {
  std::size_t result = 1;
  for (std::size_t i = 0; i < missing.size(); ++i) {
    if (missing[i] <= 0) continue;
    std::vector<std::int64_t> helps;
    for (const auto& candidate : candidates) helps.push_back(candidate.help[i]);
    std::ranges::sort(helps, std::greater<>());
    std::size_t count = 0;
    for (auto left = missing[i]; left > 0 && count <= helps.size(); ++count)
      left -= count < helps.size() ? helps[count] : 0;
    result = std::max(result, count);
  }
  return result;
}

/// Something that no end of work can change keeps the request off the node.
bool hopeless(const Answer& answer) {
  const auto* reasons = std::get_if<Reasons>(&answer);
  return reasons != nullptr && !reasons->list.empty() && reasons->list.front().nodes > 0 &&
         reasons->list.front().dimension <= Dimension::kUnhealthy;
}

class Search {
 public:
  Search(Cluster& world, const EvictionQuery& query) : world_(world), query_(query) {}

  std::optional<Eviction> run() {
    if (query_.candidates.empty()) return std::nullopt;
    const bool single = query_.gang.members.size() == 1 && query_.enough({});
    const auto& hardest = *std::ranges::max_element(query_.gang.members, {}, [](const Request& member) {
      return std::tuple(member.gpu_count(), member.milli_cpus, member.memory_bytes);
    });
    find_nodes(hardest);
    if (single && nodes_.empty()) return std::nullopt;
    if (single) {
      auto exact = exact_on_nodes();
      if (exact || !gave_up_) return exact;
    } else if (query_.candidates.size() <= kExactCandidates) {
      auto exact = exact_anywhere();
      if (exact || !gave_up_) return exact;
    }
    return greedy();
  }

 private:
  const RunningJob& candidate(std::size_t position) const { return *query_.candidates[position]; }

  /// The nodes where the request fits when enough candidates go, as far as counting tells.
  void find_nodes(const Request& request) {
    std::map<std::string, std::vector<std::size_t>> by_node;
    for (std::size_t i = 0; i < query_.candidates.size(); ++i)
      for (const auto& decision : candidate(i).decisions) {
        auto& positions = by_node[decision.node];
        if (positions.empty() || positions.back() != i) positions.push_back(i);
      }
    for (const auto& [name, positions] : by_node) {
      NodeChoice node{name, missing_on(world_, name, request), {}, 0};
      for (const auto position : positions)
        if (const auto help = help_of(candidate(position), name); helps(help, node.missing, request))
          node.useful.push_back({position, help});
      node.at_least = least(node.useful, node.missing);
      if (node.useful.size() >= node.at_least) nodes_.push_back(std::move(node));
    }
  }

  std::optional<Eviction> exact_on_nodes() {
    std::size_t most = 0;
    for (const auto& node : nodes_) most = std::max(most, node.useful.size());
    for (std::size_t count = 1; count <= most && !gave_up_; ++count)
      if (auto found = best_of_size(count)) return found;
    return std::nullopt;
  }

  /// Nodes are looked at from where the best could be, until none can be better.
  std::optional<Eviction> best_of_size(std::size_t count) {
    std::vector<std::pair<Subset, const NodeChoice*>> order;
    for (const auto& node : nodes_) {
      if (node.at_least > count || node.useful.size() < count) continue;
      Subset first;
      for (std::size_t i = 0; i < count; ++i) first.push_back(node.useful[i].position);
      order.emplace_back(std::move(first), &node);
    }
    std::ranges::sort(order, [](const auto& a, const auto& b) {
      return comes_before(a.first, b.first) || (a.first == b.first && a.second < b.second);
    });
    std::optional<Eviction> best;
    for (const auto& [first, node] : order) {
      if (gave_up_ || (best && !comes_before(first, best->gone))) break;
      if (hopeless_on(*node)) continue;
      if (auto found = first_on(*node, count, best ? &best->gone : nullptr)) best = std::move(found);
    }
    return gave_up_ ? std::nullopt : best;
  }

  bool hopeless_on(const NodeChoice& node) {
    const auto [found, added] = hopeless_.try_emplace(node.name, false);
    if (added) found->second = hopeless(world_.place_on(node.name, query_.gang.members.front()));
    return found->second;
  }

  /// The best set of that size on one node, if it is better than `limit`.
  std::optional<Eviction> first_on(const NodeChoice& node, std::size_t count, const Subset* limit) {
    std::optional<Eviction> result;
    for (Colex subsets(node.useful.size(), count); subsets; ++subsets) {
      if (++tried_ > kMostSubsets) gave_up_ = true;
      if (gave_up_) return std::nullopt;
      Subset subset;
      Help left = node.missing;
      for (const auto i : *subsets) {
        subset.push_back(node.useful[i].position);
        for (std::size_t k = 0; k < left.size(); ++k) left[k] -= node.useful[i].help[k];
      }
      if (limit != nullptr && !comes_before(subset, *limit)) return std::nullopt;
      if (std::ranges::any_of(left, [](auto amount) { return amount > 0; }) || !query_.allowed(subset))
        continue;
      if (auto decisions = trial(subset, &node.name)) return Eviction{subset, std::move(*decisions)};
    }
    return std::nullopt;
  }

  std::optional<Eviction> exact_anywhere() {
    const auto all = query_.candidates.size();
    for (std::size_t count = 1; count <= all; ++count)
      for (Colex subsets(all, count); subsets; ++subsets) {
        const Subset subset(*subsets);
        if (!query_.allowed(subset) || !query_.enough(subset)) continue;
        if (auto decisions = trial(subset, nullptr)) return Eviction{subset, std::move(*decisions)};
        if (gave_up_) return std::nullopt;
      }
    return std::nullopt;
  }

  /// Where the gang would be if these were gone.
  std::optional<std::vector<Decision>> trial(const Subset& subset, const std::string* node) {
    if (++trials_ > kMostTrials) gave_up_ = true;
    if (gave_up_) return std::nullopt;
    for (const auto position : subset) give_back(world_, candidate(position).job);
    std::optional<std::vector<Decision>> result;
    if (node == nullptr) {
      result = try_place(world_, query_.gang, effort_);
    } else {
      auto answer = world_.place_on(*node, query_.gang.members.front());
      if (auto* decision = std::get_if<Decision>(&answer)) result = {std::move(*decision)};
    }
    for (const auto position : subset) take(world_, candidate(position).job, candidate(position).decisions);
    return result;
  }

  // --- Greedy: for large gangs, and where there are too many ways.

  /// Those of one node after the other, from where the fewest have to go; before them, those without whom it
  /// is not enough.
  std::vector<std::size_t> willing_order() {
    std::vector<std::size_t> order;
    std::vector<bool> listed(query_.candidates.size());
    Subset chosen;
    const auto list = [&](std::size_t position) {
      if (listed[position]) return;
      auto with = chosen;
      with.insert(std::ranges::lower_bound(with, position), position);
      if (!query_.allowed(with)) return;
      listed[position] = true;
      chosen = std::move(with);
      order.push_back(position);
    };
    for (std::size_t i = 0; i < query_.candidates.size() && !query_.enough(chosen); ++i) list(i);
    std::ranges::sort(nodes_, {},
                      [](const NodeChoice& node) { return std::tuple(node.at_least, node.name); });
    for (const auto& node : nodes_)
      for (const auto& useful : node.useful) list(useful.position);
    for (std::size_t i = 0; i < query_.candidates.size(); ++i) list(i);  // for members that need less
    return order;
  }

  std::optional<Eviction> greedy() {
    gave_up_ = false;
    const auto order = willing_order();
    auto found = shortest_prefix(order);
    if (!found) return std::nullopt;
    spare_beside(*found);
    spare_by_trial(*found);
    return found;
  }

  std::optional<Eviction> with_prefix(const std::vector<std::size_t>& order, std::size_t length) {
    Subset subset(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(length));
    std::ranges::sort(subset);
    if (!query_.enough(subset)) return std::nullopt;
    trials_ = 0;
    auto decisions = trial(subset, nullptr);
    if (!decisions) return std::nullopt;
    return Eviction{std::move(subset), std::move(*decisions)};
  }

  std::optional<Eviction> shortest_prefix(const std::vector<std::size_t>& order) {
    std::size_t too_few = 0;
    std::size_t many = 1;
    std::optional<Eviction> best;
    while (!best && too_few < order.size()) {
      many = std::min(many, order.size());
      best = with_prefix(order, many);
      if (!best) too_few = many;
      many *= 2;
    }
    if (!best) return std::nullopt;
    for (auto high = best->gone.size(); too_few + 1 < high;) {
      const auto middle = (too_few + high) / 2;
      if (auto found = with_prefix(order, middle)) {
        best = std::move(found);
        high = middle;
      } else {
        too_few = middle;
      }
    }
    return best;
  }

  /// Whoever still has room beside the gang stays: from the one who goes least willingly.
  void spare_beside(Eviction& eviction) {
    for (const auto position : eviction.gone) give_back(world_, candidate(position).job);
    Job gang{.id = "\x01gang", .gang = query_.gang};
    take(world_, gang, eviction.decisions);
    auto gone = eviction.gone;
    for (auto at = eviction.gone.rbegin(); at != eviction.gone.rend(); ++at) {
      auto without = gone;
      std::erase(without, *at);
      if (query_.enough(without) && stays(candidate(*at))) gone = std::move(without);
    }
    give_back(world_, gang);
    for (const auto position : gone) take(world_, candidate(position).job, candidate(position).decisions);
    eviction.gone = std::move(gone);
  }

  /// Takes the job's room again, if it is there.
  bool stays(const RunningJob& running) {
    for (std::size_t rank = 0; rank < running.decisions.size(); ++rank)
      if (!world_.allocate(allocation_id(running.job, rank), running.job.gang.members[rank],
                           running.decisions[rank])) {
        for (std::size_t taken = 0; taken < rank; ++taken) world_.release(allocation_id(running.job, taken));
        return false;
      }
    return true;
  }

  /// Whoever can stay if the gang goes elsewhere instead.
  void spare_by_trial(Eviction& eviction) {
    constexpr std::size_t kMostTried = 64;
    if (eviction.gone.size() > kMostTried) return;
    const auto all = eviction.gone;
    for (auto at = all.rbegin(); at != all.rend(); ++at) {
      auto without = eviction.gone;
      std::erase(without, *at);
      if (without.empty() || !query_.enough(without)) continue;
      trials_ = 0;
      if (auto decisions = trial(without, nullptr)) eviction = {std::move(without), std::move(*decisions)};
    }
  }

  Cluster& world_;
  const EvictionQuery& query_;
  std::vector<NodeChoice> nodes_;  ///< by name
  std::map<std::string, bool> hopeless_;
  int tried_ = 0;
  int trials_ = 0;
  Effort effort_{kEffort};
  bool gave_up_ = false;
};

}  // namespace

std::optional<Eviction> fewest_evictions(Cluster& world, const EvictionQuery& query) {
  return Search(world, query).run();
}

}  // namespace drover::placement::schedule

#include <algorithm>

#include "placement/gang_search.h"

namespace drover::placement {
namespace {

/// In the unit of Effort: about 100 ns.
constexpr std::int64_t kTrialCost = 64;
constexpr std::int64_t kSetCost = 2;
constexpr std::size_t kMostWays = 64;
constexpr std::size_t kMostPlaces = 1'000'000;  ///< of all classes; listing more of them would take too long

class Backtracking {
 public:
  Backtracking(Cluster& cluster, Trial& trial, const std::vector<std::string>& nodes,
               const std::vector<MemberClass>& classes, Effort& effort)
      : cluster_(cluster), trial_(trial), nodes_(nodes), classes_(classes), effort_(effort) {
    for (std::size_t i = 0; i < classes.size(); ++i)
      for (const auto rank : classes[i].ranks) steps_.push_back({i, rank});
  }

  Outcome run() {
    std::size_t places = 0;
    for (const auto& members : classes_) places += members.fitting;
    if (places > kMostPlaces) return Outcome::kGaveUp;
    for (const auto& members : classes_) fitting_.push_back(cluster_.fitting_positions(*members.request));
    if (place(0, 0)) return Outcome::kFound;
    return gave_up_ || incomplete_ ? Outcome::kGaveUp : Outcome::kImpossible;
  }

 private:
  struct Step {
    std::size_t members = 0;  ///< number of the class
    std::size_t rank = 0;
  };

  /// Whether there is effort left.
  bool spend(std::int64_t amount) {
    effort_.left -= amount;
    gave_up_ = gave_up_ || effort_.left < 0;
    return !gave_up_;
  }

  /// All from this step on; the next member on the `from`-th of its nodes or after.
  bool place(std::size_t index, std::size_t from) {
    if (index == steps_.size()) return true;
    std::vector<std::size_t> tried;
    const bool ungrouped = classes_[steps_[index].members].request->group.empty();
    const auto& positions = fitting_[steps_[index].members];
    for (auto i = from; i < positions.size(); ++i) {
      const auto& node = nodes_[positions[i]];
      // Of nodes that are alike, one may have the group.
      const bool known = ungrouped && std::ranges::any_of(tried, [&](std::size_t other) {
                           return spend(1) && alike(nodes_[positions[other]], node);
                         });
      if (!spend(1)) return false;
      if (known) continue;
      tried.push_back(i);
      if (place_on(node, index, i)) return true;
      if (gave_up_) return false;
    }
    return false;
  }

  /// For all members.
  bool alike(const std::string& one, const std::string& other) const {
    const auto alike_for = [&](const MemberClass& members) {
      const auto& eligibility = members.request->eligibility;
      return !eligibility ||
             (eligibility->why_not(one) == nullptr) == (eligibility->why_not(other) == nullptr);
    };
    return cluster_.alike(one, other) && std::ranges::all_of(classes_, alike_for);
  }

  bool place_on(const std::string& node, std::size_t index, std::size_t order) {
    const auto& [members, rank] = steps_[index];
    const auto& request = *classes_[members].request;
    if (!spend(kTrialCost) || !trial_.put_on(node, rank, request)) return false;
    const auto first = trial_.placed().back().decision;
    if (go_on(index, order)) return true;
    if (gave_up_) return false;
    trial_.undo(index);
    const auto ways = cluster_.ways_on(node, request, kMostWays);
    incomplete_ = incomplete_ || !ways.complete;
    if (!spend(kSetCost * ways.tried)) return false;
    for (const auto& decision : ways.decisions) {
      if (decision == first) continue;
      if (!spend(kTrialCost)) return false;
      if (trial_.take(rank, request, decision) && go_on(index, order)) return true;
      if (gave_up_) return false;
      trial_.undo(index);
    }
    return false;
  }

  bool go_on(std::size_t index, std::size_t order) {
    // Members that are alike are placed in one order only.
    const bool alike = index + 1 < steps_.size() && steps_[index + 1].members == steps_[index].members;
    return place(index + 1, alike ? order : 0);
  }

  Cluster& cluster_;
  Trial& trial_;
  const std::vector<std::string>& nodes_;
  const std::vector<MemberClass>& classes_;
  Effort& effort_;
  std::vector<Step> steps_;
  std::vector<std::vector<std::size_t>>
      fitting_;  ///< nodes of each class while nothing was placed, best first
  bool gave_up_ = false;
  bool incomplete_ = false;  ///< some ways were left out
};

}  // namespace

Outcome backtrack(Cluster& cluster, Trial& trial, const std::vector<std::string>& nodes,
                  const std::vector<MemberClass>& classes, Effort& effort) {
  return Backtracking(cluster, trial, nodes, classes, effort).run();
}

}  // namespace drover::placement

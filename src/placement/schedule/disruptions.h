#pragma once

// What disruption budgets still allow while a plan chooses who is ended for others.

#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "placement/schedule.h"
#include "placement/schedule/victims.h"

namespace drover::placement::schedule {

class Disruptions {
 public:
  /// `budgets` outlive it.
  explicit Disruptions(const std::vector<DisruptionBudget>& budgets) : budgets_(budgets) {}

  /// By how many containers it goes beyond the budgets when all of these end: what was spent before does not
  /// count. Never less for a larger set.
  int beyond(const std::vector<Runner*>& victims);
  /// It was chosen: what its end takes of the budgets is spent.
  void end(const RunningJob& victim);

 private:
  using Shares = std::vector<std::pair<std::size_t, int>>;  ///< of budgets: containers

  const Shares& shares_of(const RunningJob& job);

  const std::vector<DisruptionBudget>& budgets_;
  // Known when they are asked for: most plans look for no victims.
  std::vector<int> left_;  ///< by budget; none below 0
  std::map<std::string_view, Shares> by_job_;
};

}  // namespace drover::placement::schedule

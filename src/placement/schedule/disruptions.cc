#include "placement/schedule/disruptions.h"

#include <algorithm>

namespace drover::placement::schedule {

const Disruptions::Shares& Disruptions::shares_of(const RunningJob& job) {
  static const Shares kNone;
  if (left_.size() < budgets_.size())
    for (const auto& budget : budgets_) {
      for (const auto& [protected_job, containers] : budget.containers)
        by_job_[protected_job].emplace_back(left_.size(), containers);
      left_.push_back(std::max(budget.allowed, 0));
    }
  const auto found = by_job_.find(job.job.id);
  return found == by_job_.end() ? kNone : found->second;
}

int Disruptions::beyond(const std::vector<Runner*>& victims) {
  std::map<std::size_t, int> spent;
  for (const auto* victim : victims)
    for (const auto& [budget, containers] : shares_of(*victim->running)) spent[budget] += containers;
  int beyond = 0;
  for (const auto& [budget, containers] : spent) beyond += std::max(0, containers - left_[budget]);
  return beyond;
}

void Disruptions::end(const RunningJob& victim) {
  for (const auto& [budget, containers] : shares_of(victim))
    left_[budget] = std::max(0, left_[budget] - containers);
}

}  // namespace drover::placement::schedule

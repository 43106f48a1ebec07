#pragma once

// Who may be ended for whom. A job of strictly lower priority; and, when a queue takes back what it is sure
// of, whoever holds what others lent them. But never work that a guarantee covers which the one who wants its
// room has no part in: so nobody can take back in turn what was taken from them, and it ends.

#include <deque>
#include <map>
#include <set>
#include <vector>

#include "placement/schedule/fairness.h"
#include "placement/schedule/limits.h"
#include "placement/schedule/shapes.h"

namespace drover::placement::schedule {

/// A running job as the plan sees it.
struct Runner {
  const RunningJob* running = nullptr;
  const Shape* shape = nullptr;
  int queue = 0;
  Accounts accounts;
  bool ending = false;   ///< it was ending before, or this plan ends it
  bool new_now = false;  ///< started, or kept room for, by this plan
};

/// A waiting job as the plan sees it.
struct Waiter {
  const Job* job = nullptr;
  Shape* shape = nullptr;
  int queue = 0;
  Accounts accounts;
};

class Victims {
 public:
  Victims(const FairShare& fair_share, const LimitLedger& limits)
      : fair_share_(fair_share), limits_(limits) {}

  /// All who run; later calls look at their marks. Sorted: who goes rather comes first (lowest priority, then
  /// youngest).
  void set_runners(std::deque<Runner>& runners);

  /// A job was looked at and does not start: what stands behind it in its queue reclaims no more where no
  /// guarantee covers that job itself, for its room would be taken back by those who stand before it.
  void pass(const Waiter& waiter);

  /// Whoever may be ended for it, in order of preference.
  std::vector<Runner*> candidates(const Waiter& waiter);
  /// Whether these may be ended together.
  bool allowed(const Waiter& waiter, std::vector<Runner*> victims) const;
  /// Whether the waiter keeps within all limits when these have ended.
  bool enough(const Waiter& waiter, const std::vector<Runner*>& victims) const;

 private:
  const std::vector<std::size_t>& order();
  bool reclaims(const Waiter& waiter, const Runner& runner) const;
  /// By a queue that the waiter does not stand in; `less` has what is taken from each queue already.
  bool is_protected(const Waiter& waiter, const Runner& runner, const std::map<int, Load>& less) const;

  const FairShare& fair_share_;
  const LimitLedger& limits_;
  std::deque<Runner>* runners_ = nullptr;
  std::vector<std::size_t> order_;
  bool ordered_ = false;
  std::set<int> passed_;  ///< queues
};

}  // namespace drover::placement::schedule

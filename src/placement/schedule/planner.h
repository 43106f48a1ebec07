#pragma once

// One plan from begin to end: takes the waiting jobs in turn and finds out what can be done for each. Used
// once.

#include <deque>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "placement/schedule.h"
#include "placement/schedule/disruptions.h"
#include "placement/schedule/eviction.h"
#include "placement/schedule/fairness.h"
#include "placement/schedule/limits.h"
#include "placement/schedule/reservation.h"
#include "placement/schedule/room.h"
#include "placement/schedule/shapes.h"
#include "placement/schedule/verdicts.h"
#include "placement/schedule/victims.h"

namespace drover::placement::schedule {

/// For so many jobs a plan looks for victims; the next plan goes on.
inline constexpr int kMostVictimSearches = 64;

class Planner {
 public:
  /// Everything outlives the planner.
  Planner(Cluster& cluster, const Rules& rules, const std::vector<Job>& waiting,
          const std::vector<RunningJob>& running, TimePoint now, const std::vector<DisruptionBudget>& budgets,
          const OnStart& on_start);

  Plan run();

 private:
  void consider(const Waiter& waiter);
  /// Each returns whether it is settled what becomes of the job.
  bool start_now(const Waiter& waiter);
  bool start_as(const Waiter& waiter, Span span);
  bool wait_for_ending(const Waiter& waiter);
  bool preempt(const Waiter& waiter);
  std::optional<Eviction> find_victims(const Waiter& waiter, bool within_limits,
                                       const std::vector<Runner*>& candidates);
  void end(const Waiter& waiter, const std::vector<Runner*>& victims, const std::vector<Decision>& decisions);
  void reserve(const Waiter& waiter);
  std::optional<Reservation> find_reservation(const Waiter& waiter);

  bool ends_in_time(const Job& job) const;
  void hold(const Waiter& waiter, const std::vector<Decision>& decisions,
            const std::vector<const RunningJob*>& victims);
  /// From now on it counts among those who run.
  void add_runner(const Waiter& waiter, const std::vector<Decision>& decisions, bool starts);
  /// Nobody joins its groups any more: whoever shares their GPUs would keep them.
  void close_groups(const Shape& shape);
  /// When nothing ran any more.
  bool could_fit_once(const Gang& gang);

  const std::vector<Job>& waiting_;
  TimePoint now_;
  const OnStart& on_start_;
  Shapes shapes_;
  FairShare fair_share_;
  LimitLedger limits_;
  std::vector<const RunningJob*> ending_;
  std::deque<Runner> runners_;
  std::deque<RunningJob> new_;  ///< started, or kept room for
  Room room_;
  Victims victims_;
  Disruptions disruptions_;
  std::unique_ptr<Cluster> empty_;  ///< nothing runs any more
  using Search = std::tuple<const Shape*, int, int, Accounts>;
  std::set<Search> in_vain_;  ///< for whom victims were looked for
  int searches_ = 0;
  /// Groups of which a job is going to end for others, or waits for room that is kept for it.
  std::set<std::string> closed_groups_;
  int ended_ = 0;  ///< so many jobs were chosen to end
  bool tried_reservation_ = false;
  bool reserved_ = false;
  std::optional<TimePoint> reserved_at_;
  Plan plan_;
  std::vector<Verdict> verdicts_;
};

}  // namespace drover::placement::schedule

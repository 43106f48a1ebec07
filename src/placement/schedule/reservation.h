#pragma once

// When and where a job that does not fit now can start at the earliest, if nothing else is started on what it
// needs (EASY backfilling: Lifka, JSSPP '95; Mu'alem and Feitelson, TPDS '01). Pure.
//
// With time limits this is when enough jobs must have ended. Where time limits do not tell, it waits for jobs
// that must end some day: draining.h says which.
//
// Where time limits say nothing, what is expected of jobs takes their place; who has run longer than was
// expected may end at any moment.
//
// A plan remembers nothing, and yet the next one must promise no less: else others could start where the
// first kept room, and the job would wait for ever. A time never gets later, for who was started since either
// ends before it or is not in the way; and where somebody runs longer than was expected, it comes to be now,
// and nobody else starts in the way. Without a time, at first only jobs are waited for that stand before it
// in the queue: none of them was started since. Only if they are not enough, all are, from the one that has
// run longest: new ones come last.

#include <optional>
#include <vector>

#include "placement/schedule.h"

namespace drover::placement::schedule {

struct Reservation {
  std::vector<Decision> decisions;
  std::optional<TimePoint> at;          ///< at the latest; absent: when `gone` have ended, whenever that is
  std::vector<const RunningJob*> gone;  ///< who has ended by then
  bool estimated = false;               ///< the time goes by what is expected of some of them
};

struct ReservationQuery {
  const Gang& gang;
  /// Whom the cluster holds, without those that it could preempt: who stands before it in the queue, by
  /// priority and arrival, and all others.
  const std::vector<const RunningJob*>& before;
  const std::vector<const RunningJob*>& behind;
  /// Those whom it would preempt once it can start by that: nothing to wait for.
  const std::vector<const RunningJob*>& preemptable;
  TimePoint now;
};

/// `world` holds all of them, and is anything afterwards. None when the end of no work helps.
std::optional<Reservation> earliest_start(Cluster& world, const ReservationQuery& query);

/// When its time limit ends it, or it is expected to end; absent when nobody can say.
std::optional<TimePoint> end_of(const RunningJob& running, TimePoint now);

}  // namespace drover::placement::schedule

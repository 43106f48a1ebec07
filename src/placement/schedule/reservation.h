#pragma once

// When and where a job that does not fit now can start at the earliest, if nothing else is started on what it
// needs (EASY backfilling: Lifka, JSSPP '95; Mu'alem and Feitelson, TPDS '01). Pure.
//
// With time limits this is when enough jobs must have ended. Where time limits do not tell, it waits for the
// fewest jobs that must end. Which those are depends on what runs alone, in an order that stays the same, so
// that from plan to plan there are fewer of them and never more: whoever waits starts in the end.

#include <optional>
#include <vector>

#include "placement/schedule.h"

namespace drover::placement::schedule {

struct Reservation {
  std::vector<Decision> decisions;
  std::optional<TimePoint> at;          ///< at the latest; absent: when `gone` have ended, whenever that is
  std::vector<const RunningJob*> gone;  ///< who has ended by then
};

struct ReservationQuery {
  const Gang& gang;
  /// Whom the cluster holds, without those that it could preempt.
  const std::vector<const RunningJob*>& running;
  /// Those whom it would preempt once it can start by that: nothing to wait for.
  const std::vector<const RunningJob*>& preemptable;
  TimePoint now;
};

/// `world` holds all of them, and is anything afterwards. None when the end of no work helps.
std::optional<Reservation> earliest_start(Cluster& world, const ReservationQuery& query);

/// When its time limit ends it; absent without one.
std::optional<TimePoint> end_of(const RunningJob& running, TimePoint now);

}  // namespace drover::placement::schedule

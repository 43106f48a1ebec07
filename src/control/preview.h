#pragma once

// What would become of tasks if they were submitted now, and what is to be expected of those that wait. Pure;
// nothing of it is done.

#include <optional>
#include <string>
#include <vector>

#include "control/state.h"

namespace drover::control {

struct Preview {
  std::vector<placement::Decision> decisions;  ///< by rank; empty when it does not start now
  std::vector<std::string> victims;            ///< ids of the tasks that would be ended for it
  int place = 0;                               ///< among those that wait then, 1 is the head; 0: it starts
  placement::Reasons reasons;                  ///< why it would wait
};

/// One task, or a gang by rank, complete as for event::Submitted. The errors are those of a submission.
Result<Preview> preview(const State& state, const std::vector<workload::Task>& tasks, TimePoint now);

/// The same where others place (State::placed_by_others), as far as it is decided here: whether they would be
/// asked at once. False: it is held back.
Result<bool> preview_of_handing_over(const State& state, const std::vector<workload::Task>& tasks,
                                     TimePoint now);

/// When a job that waits is thought to start, if all run as long as is expected of them and nobody else
/// comes. None when that cannot be said: somebody before it may run for ever, or there are too many.
std::optional<TimePoint> expected_start(const State& state, const std::string& job, TimePoint now);

}  // namespace drover::control

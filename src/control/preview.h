#pragma once

// What would become of tasks if they were submitted now. Pure; nothing of it is done.

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

}  // namespace drover::control

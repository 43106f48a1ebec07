#pragma once

// Task folders that the journal does not know: it was moved away, lost its last entries, or is an older one.
// Nothing that a task wrote is removed because the journal is silent about it. Blocks: for the start of the
// daemon, and for people who ask what is wrong.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "container/containerizer.h"
#include "control/state.h"

namespace drover::engine {

struct Strays {
  std::vector<control::TaskRecord> running;  ///< tasks that the journal does not know, or not where
  std::vector<std::string> forgotten;        ///< tasks that were removed, whose folders are still there
  std::vector<std::string> gone;             ///< the same, whose folders are not
};

/// Takes the folders of tasks that ended out of the way, and tells of it. An Error: a task does not end of
/// which nobody knows what it holds.
Result<Strays> find_strays(container::Containerizer& containerizer, const control::State& state,
                           const std::function<void(const std::string&)>& log);

/// What there is for people to see to: folders that were taken out of the way.
std::optional<Error> quarantine_problem(const container::Containerizer& containerizer);

}  // namespace drover::engine

#pragma once

// Another share of its GPUs for a task that runs. Pure.

#include <string>

#include "control/draft.h"

namespace drover::control {

/// The task, which is known, has that share from now on, of the GPUs that it has. Refused in a sentence, and
/// nothing changes, when it has no share of its own, does not run, or belongs to a definition (kConflict);
/// when such a share cannot be (kInvalid); and when it is more than is free there, or than the limits of its
/// queue, user and namespace let it have (kConflict). Less than it has it gets always.
Status resize(Draft& draft, const std::string& id, const workload::Share& share);

}  // namespace drover::control

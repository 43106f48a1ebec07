#pragma once

// Which task somebody means. Pure.

#include <string>

#include "control/state.h"
#include "engine/api.h"

namespace drover::engine {

/// `id` is a full id, a unique prefix of one, the id by which an app or a job shows it, or a name. Of several
/// tasks with that name the newest that has not ended is meant, or the newest; of a gang or an array the
/// first. kNotFound; kInvalid for a prefix of several ids.
Result<const control::TaskRecord*> find_task(const control::State& state, const Caller& caller,
                                             const std::string& id);
/// The same; of a gang or an array that is meant by a prefix, too, the first member.
Result<const control::TaskRecord*> find_job(const control::State& state, const Caller& caller,
                                            const std::string& id);
/// Of what find_job() found by `id`: the id of the whole gang or array, but for an id of one member.
const std::string& meant_by(const control::TaskRecord& found, const std::string& id);

}  // namespace drover::engine

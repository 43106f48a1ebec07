#pragma once

// Which task somebody means. Pure.

#include <string>

#include "control/state.h"
#include "engine/api.h"

namespace drover::engine {

/// `id` is a full id, a unique prefix of one, or the name of exactly one of the caller's tasks. kNotFound;
/// kInvalid when it may mean several.
Result<const control::TaskRecord*> find_task(const control::State& state, const Caller& caller,
                                             const std::string& id);
/// The only one, or the first of the only gang.
Result<const control::TaskRecord*> find_job(const control::State& state, const Caller& caller,
                                            const std::string& id);

}  // namespace drover::engine

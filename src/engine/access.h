#pragma once

// Whose tasks a caller sees.

#include "engine/api.h"

namespace drover::engine {

inline bool may_see(const Caller& caller, const control::TaskRecord& record) {
  return caller.is_root() || record.task.owner == caller.user.uid;
}

}  // namespace drover::engine

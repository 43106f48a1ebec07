#pragma once

// So many calls at once, as a load needs them. Blocks.

#include <cstddef>
#include <functional>

#include "base/result.h"

namespace drover::bench {

/// Does `work` for 0 … count-1, in about that order, by so many threads. The first error ends it.
Status in_parallel(std::size_t threads, std::size_t count, const std::function<Status(std::size_t)>& work);

}  // namespace drover::bench

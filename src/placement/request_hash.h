#pragma once

// Hashing of requests: equal ones have equal hashes. Pure.

#include <cstdint>

#include "placement/request.h"

namespace drover::placement {

std::uint64_t hash_of(const Request& request);

}  // namespace drover::placement

#pragma once

// The routes of all APIs in one table.

#include <span>

#include "api/router.h"

namespace drover::api {

std::span<const Route> all_routes();

}  // namespace drover::api

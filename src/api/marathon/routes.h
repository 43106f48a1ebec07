#pragma once

// The routes of the Marathon API.

#include <span>

#include "api/router.h"

namespace drover::api {

std::span<const Route> marathon_routes();

}  // namespace drover::api

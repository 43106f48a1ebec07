#pragma once

// Chronos' API, at /v1/scheduler as its clients of today have it, and at /scheduler as older ones do.

#include <span>

#include "api/router.h"

namespace drover::api {

std::span<const Route> chronos_routes();

}  // namespace drover::api

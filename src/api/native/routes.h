#pragma once

// The routes of Drover's own API.

#include <span>

#include "api/router.h"

namespace drover::api {

std::span<const Route> native_routes();

}  // namespace drover::api

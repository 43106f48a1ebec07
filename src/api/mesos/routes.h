#pragma once

// The routes of the Mesos APIs: the scheduler API, and what operators and their tools read.

#include <span>

#include "api/router.h"

namespace drover::api::mesos {

std::span<const Route> routes();

}  // namespace drover::api::mesos

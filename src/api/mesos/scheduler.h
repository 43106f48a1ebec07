#pragma once

// POST /api/v1/scheduler: everything that a framework asks.

#include "api/router.h"

namespace drover::api::mesos {

asio::awaitable<Result<Response>> call_scheduler(const Services& services, const Request& request);

}  // namespace drover::api::mesos

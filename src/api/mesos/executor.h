#pragma once

// POST /api/v1/executor, where executors that frameworks bring find their agent.

#include "api/router.h"

namespace drover::api::mesos {

asio::awaitable<Result<Response>> call_executor(const Services& services, const Request& request);

}  // namespace drover::api::mesos

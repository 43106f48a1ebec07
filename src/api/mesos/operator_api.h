#pragma once

// The operator API v1 of Mesos: what command line tools and monitoring ask a master and an agent, in JSON or
// in protobuf. One process is both here. Everybody is told what the other routes of operator.h tell him.

#include "api/router.h"

namespace drover::api::mesos {

/// Calls of the master. A call that only an agent has, by its name, goes to that.
asio::awaitable<Result<Response>> call_master(const Services& services, const Request& request);
/// Calls of the agent.
asio::awaitable<Result<Response>> call_agent(const Services& services, const Request& request);

}  // namespace drover::api::mesos

#pragma once

// What a subscriber to the master hears: all that he may see, and then what changes of it.

#include "api/mesos/media_type.h"
#include "api/router.h"

namespace drover::api::mesos {

/// The live answer to SUBSCRIBE. On the control strand.
asio::awaitable<Result<Response>> subscribe_operator(const Services& services, const engine::Caller& caller,
                                                     MediaType type);

}  // namespace drover::api::mesos

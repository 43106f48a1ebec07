#pragma once

// What a subscriber to the master hears: all that he may see, and then what changes of it.

#include <boost/asio/any_io_executor.hpp>

#include "api/mesos/media_type.h"
#include "api/router.h"

namespace drover::api::mesos {

/// The live answer to SUBSCRIBE, written on `executor`, the control strand.
Response subscribe_operator(const Services& services, const engine::Caller& caller, MediaType type,
                            const boost::asio::any_io_executor& executor);

}  // namespace drover::api::mesos

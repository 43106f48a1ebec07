#pragma once

// Calls of the executor API: from an HTTP request to a call that makes sense in itself, or the answer that
// Mesos gives to one that does not. Pure. A heavy header, as protocol.h is.

#include <tl/expected.hpp>

#include "api/mesos/call.h"

#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Weverything"
#include "mesos/executor.pb.h"
#pragma clang diagnostic pop

namespace drover::api::mesos {

tl::expected<v1::executor::Call, Response> read_executor_call(const Request& request);

/// Whether a decoded call has what its type needs: an error in the words of Mesos.
Status validate_call(const v1::executor::Call& call);

}  // namespace drover::api::mesos

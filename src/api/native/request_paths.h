#pragma once

// What is wrong with a request is found in two places: while it is read, and when placement looks at what was
// read. The second knows the values, not the fields they came from; here its paths become those of the body.
// Pure.

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"

namespace drover::api {

/// `error` as the daemon answers a submission; `body` is what the client sent. "/members/1/share/milli" is
/// "/gang/members/1/gpu_share" in a gang whose members are listed, and "/gpu_share" in one whose are alike.
Error in_fields(Error error, const nlohmann::json& body);

}  // namespace drover::api

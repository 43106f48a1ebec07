#pragma once

// A file of a sandbox as the whole answer to a request.

#include <string>

#include "api/http.h"
#include "base/fair_pool.h"
#include "base/sandbox.h"

namespace drover::api {

/// To be kept under the last part of `path`. Sends exactly `file.size` bytes, or fails: a file that shrinks
/// meanwhile cannot be sent whole. The pool outlives the response.
Response download_response(FairPool& pool, uid_t caller, SandboxContent file, const std::string& path);

}  // namespace drover::api

#pragma once

// The credentials file of TCP access: lines "user:secret", readable by the daemon's user alone. There is no
// default password: a file that does not exist is made with one random secret for root. Blocks; thread safe.

#include <string>
#include <vector>

#include "api/access.h"
#include "base/result.h"

namespace drover::api {

/// Reads the file, or creates it. Refuses a file that somebody else owns or may read.
Result<std::vector<Credential>> open_credentials(const std::string& path);
/// The same, but a file that is not there is an error.
Result<std::vector<Credential>> read_credentials(const std::string& path);

}  // namespace drover::api

#pragma once

// Files of secrets that are the daemon's alone. Blocks; thread safe.

#include <optional>
#include <string>

#include "base/result.h"

namespace drover::api {

/// 256 random bits, as hex digits.
Result<std::string> random_secret();

/// What the file holds; nullopt when there is none. Refuses one that somebody else owns or may read. `what`
/// names it: "The credentials file".
Result<std::optional<std::string>> read_secret_file(const std::string& path, const std::string& what);

}  // namespace drover::api

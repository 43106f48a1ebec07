#pragma once

// YAML text as a JSON value, so that one decoder reads every format. Plain scalars become null, booleans,
// whole numbers (decimal or 0x…), numbers or strings; quoted ones are always strings. Aliases, tags and
// further documents are refused: the files read here need none of them, and a few lines of nested
// aliases can fill the memory. Thread safe.

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "base/result.h"

namespace drover {

/// `what` names the document in messages. An empty document is null. kInvalid with the line on a syntax
/// error.
Result<nlohmann::json> parse_yaml(std::string_view text, std::string_view what);

/// The same for a file of at most 1 MiB.
Result<nlohmann::json> read_yaml(const std::filesystem::path& file);

}  // namespace drover

#pragma once

// JSON values as YAML text that people like to read: what names a thing stands first, what is short on one
// line, text of several lines as it is. Pure; thread safe.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace drover {

/// One document each, with "---" between them; parse_yaml() of one gives the value back. Text must be UTF-8.
std::string to_yaml(const std::vector<nlohmann::json>& documents);

}  // namespace drover

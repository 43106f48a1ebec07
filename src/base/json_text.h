#pragma once

// JSON values as text. Pure.

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace drover {

/// On one line, or with `indent` spaces a level. What is no UTF-8 becomes U+FFFD, so it never fails.
std::string to_text(const nlohmann::json& value, int indent = -1);
std::string to_text(const nlohmann::ordered_json& value, int indent = -1);

}  // namespace drover

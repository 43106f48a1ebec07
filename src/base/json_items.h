#pragma once

// Reads a long list item by item: a tree of all of it would take longer to build than to read.

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "base/result.h"

namespace drover {

/// Calls `visit`, which may take it, with every item of the list that stands as `name` in the object that
/// `text` is, in their order; the answer is the object with that list empty. What is refused is what
/// parse_json() refuses; items before a mistake have been visited then.
Result<nlohmann::json> parse_json_items(std::string_view text, std::string_view what, std::string_view name,
                                        const std::function<void(nlohmann::json&)>& visit);

}  // namespace drover

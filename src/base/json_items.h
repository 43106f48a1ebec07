#pragma once

// Reads a long document in parts: a tree of all of it would take longer to build than to read.

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "base/result.h"

namespace drover {

/// Members of which no tree is made, as long as they are JSON: {"metadata", "managedFields"}.
struct LeftOut {
  std::string_view parent = {};  ///< of the member they stand in
  std::string_view member = {};  ///< "": none
};
Result<nlohmann::json> parse_json(std::string_view text, std::string_view what, const LeftOut& left_out);

/// Calls `visit`, which may take it, with every item of the list that stands as `name` in the object that
/// `text` is, in their order; the answer is the object with that list empty. What is refused is what
/// parse_json() refuses; items before a mistake have been visited then.
Result<nlohmann::json> parse_json_items(std::string_view text, std::string_view what, std::string_view name,
                                        const std::function<void(nlohmann::json&)>& visit,
                                        const LeftOut& left_out = {});

}  // namespace drover

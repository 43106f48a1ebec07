#pragma once

// The ways of a schema to say what may stand in a place, with its references followed. Only what the schemas
// of docs/schemas/ use is known. Pure; thread safe.

#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace drover::schemas {

/// A part of a schema, and the document in which its references are looked up.
struct Part {
  const nlohmann::json* document;
  const nlohmann::json* schema;
};
/// What stands in one place may follow several: "anyOf". None where everything may.
using Parts = std::vector<Part>;

/// Of a whole definition, by the name of its schema.
Parts parts_of(std::string_view schema);
/// Of the field `name` of such an object; none where no such field may be.
Parts below(const Parts& parts, const std::string& name);
/// Of the items of such a list.
Parts items_of(const Parts& parts);
/// The names that an object has there; none where it may have any.
std::set<std::string> names_of(const Parts& parts);

}  // namespace drover::schemas

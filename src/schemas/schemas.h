#pragma once

// The JSON Schemas of what people write into files (docs/schemas/), which their editors read, and what the
// decoders' own mistakes do not say: which fields nobody knows, and what may stand where. Pure; thread safe.

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace drover::schemas {

/// By name: "app", "group", "job", "queue", "quota", "task".
const std::map<std::string_view, std::string_view>& texts();

struct UnknownField {
  std::string path;   ///< a JSON pointer: "/healthChecks/0/pth"
  std::string meant;  ///< the field that is nearly called so; "" for none
};

/// Fields of `value` that the schema does not know, the first hundred. What is of a wrong type has none.
std::vector<UnknownField> unknown_fields(std::string_view schema, const nlohmann::json& value);

/// What a schema says of one field.
struct Field {
  std::vector<std::string> words;  ///< it is one of these; empty: of any
  std::string unit;                ///< of a number: "MiB", "seconds"
  std::string pattern_words;       ///< what the text must look like
};

/// Of the field at a JSON pointer; none where there is no such field.
std::optional<Field> field_at(std::string_view schema, std::string_view pointer);

}  // namespace drover::schemas

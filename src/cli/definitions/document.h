#pragma once

// The text of a definition, YAML or JSON, as JSON values that know where each of their parts stands. Aliases
// are followed as long as what they unfold stays small; keys that stand twice, tags, and what is nested too
// deep are refused. Pure.

#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

namespace drover::cli {

inline constexpr std::size_t kMaxDefinitionBytes = 4 << 20;
/// Values of one file, with all that its aliases stand for.
inline constexpr std::size_t kMostDefinitionNodes = 200'000;

/// In a text, counted from 1, columns in characters; line 0: not known.
struct Place {
  std::size_t line = 0;
  std::size_t column = 0;

  bool operator==(const Place&) const = default;
};

/// What is wrong, and where.
struct Mistake {
  Place place;
  std::string path;  ///< "/healthChecks(0)/path"; "" for the whole text
  std::string message;
  std::string hint;
};

struct Document {
  nlohmann::json value;
  std::map<std::string, Place> places;  ///< by pointer: "/healthChecks/0/path"
  std::map<std::string, Place> names;   ///< of the names of fields, by the pointers of their values

  /// Of the value at `path`, a pointer or in Marathon's spelling; of the nearest one around it when there is
  /// none.
  Place place_of(std::string_view path) const;
  /// Of the name of the field at `path`.
  Place place_of_name(std::string_view path) const;
};

/// A path in Marathon's spelling as a pointer: "/healthChecks(0)/path" → "/healthChecks/0/path".
std::string pointer_of(std::string_view path);

/// Every document of a YAML text, or the one of a JSON text; empty documents are left out. `only_json`
/// refuses what is YAML and not JSON.
tl::expected<std::vector<Document>, Mistake> parse_documents(std::string_view text, bool only_json);

/// Line `number` of a text, counted from 1, without its end; "" when there is none.
std::string_view line_of(std::string_view text, std::size_t number);

/// A line of a text and a caret under the place, as two lines; what is long is cut. "" for an unknown place.
std::string point_at(std::string_view line, Place place);

}  // namespace drover::cli

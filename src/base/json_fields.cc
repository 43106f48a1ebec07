#include "base/json_fields.h"

#include <algorithm>

namespace drover {
namespace {

/// Behind the quote that ends the string that begins at `begin`.
std::size_t end_of_string(std::string_view text, std::size_t begin) {
  for (auto at = begin + 1; at < text.size(); ++at) {
    if (text[at] == '\\')
      ++at;
    else if (text[at] == '"')
      return at + 1;
  }
  return text.size();
}

/// At the comma or bracket behind the value that begins at `begin`.
std::size_t end_of_value(std::string_view text, std::size_t begin) {
  std::size_t depth = 0;
  for (auto at = begin; at < text.size();) {
    const char c = text[at];
    if (c == '"') {
      at = end_of_string(text, at);
      continue;
    }
    if (depth == 0 && (c == ',' || c == '}' || c == ']')) return at;
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    ++at;
  }
  return text.size();
}

}  // namespace

std::vector<std::pair<std::string_view, std::string_view>> json_fields(std::string_view object) {
  std::vector<std::pair<std::string_view, std::string_view>> fields;
  if (!object.starts_with('{')) return fields;
  std::size_t at = 1;
  while (at < object.size() && object[at] == '"') {
    const auto name_end = end_of_string(object, at);
    if (name_end >= object.size() || object[name_end] != ':') break;
    const auto value_end = end_of_value(object, name_end + 1);
    fields.emplace_back(object.substr(at + 1, name_end - at - 2),
                        object.substr(name_end + 1, value_end - name_end - 1));
    at = value_end + 1;
  }
  return fields;
}

}  // namespace drover

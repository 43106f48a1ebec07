#include "schemas/schemas.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/decode.h"
#include "schemas/parts.h"

namespace drover::schemas {
namespace {

using nlohmann::json;

constexpr std::size_t kMostUnknown = 100;

void look(const Parts& parts, const json& value, const std::string& path, std::vector<UnknownField>& found) {
  if (value.is_array()) {
    const auto items = items_of(parts);
    for (std::size_t i = 0; i < value.size() && found.size() < kMostUnknown; ++i)
      look(items, value[i], fmt::format("{}/{}", path, i), found);
  }
  if (!value.is_object()) return;
  const auto names = names_of(parts);
  for (const auto& [name, field] : value.items()) {
    if (found.size() >= kMostUnknown) return;
    const auto inner_path = path + "/" + pointer_token(name);
    const auto inner = below(parts, name);
    if (inner.empty() && !names.empty())
      found.push_back({inner_path, nearest(name, names)});
    else
      look(inner, field, inner_path, found);
  }
}

bool is_index(const std::string& token) {
  return !token.empty() && token.find_first_not_of("0123456789") == std::string::npos;
}

std::string name_of_token(std::string_view token) {
  std::string name(token);
  for (const auto& [escaped, plain] : {std::pair("~1", "/"), std::pair("~0", "~")})
    for (auto at = name.find(escaped); at != std::string::npos; at = name.find(escaped, at + 1))
      name.replace(at, 2, plain);
  return name;
}

}  // namespace

std::vector<UnknownField> unknown_fields(std::string_view schema, const json& value) {
  std::vector<UnknownField> found;
  look(parts_of(schema), value, "", found);
  return found;
}

std::optional<Field> field_at(std::string_view schema, std::string_view pointer) {
  auto parts = parts_of(schema);
  while (!pointer.empty()) {
    pointer.remove_prefix(1);
    const auto name = name_of_token(pointer.substr(0, pointer.find('/')));
    pointer.remove_prefix(std::min(pointer.find('/'), pointer.size()));
    auto items = is_index(name) ? items_of(parts) : Parts();
    parts = items.empty() ? below(parts, name) : std::move(items);
  }
  if (parts.empty()) return std::nullopt;
  Field field;
  for (const auto& part : parts) {
    for (const auto& word : part.schema->value("enum", json::array()))
      if (word.is_string()) field.words.push_back(word.get<std::string>());
    field.unit = part.schema->value("unit", field.unit);
    field.pattern_words = part.schema->value("patternErrorMessage", field.pattern_words);
  }
  return field;
}

}  // namespace drover::schemas

#include "schemas/parts.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "schemas/schemas.h"

namespace drover::schemas {
namespace {

using nlohmann::json;

const json* document(std::string_view name) {
  static const auto all = [] {
    std::map<std::string_view, json> parsed;
    for (const auto& [each, text] : texts()) parsed.emplace(each, json::parse(text));
    return parsed;
  }();
  const auto found = all.find(name);
  return found == all.end() ? nullptr : &found->second;
}

/// "app.json#/definitions/path"
Part resolve(const Part& part, const std::string& reference) {
  const auto mark = std::min(reference.find('#'), reference.size());
  constexpr std::string_view kEnding = ".json";
  const auto* in =
      mark == 0 ? part.document : document(std::string_view(reference).substr(0, mark - kEnding.size()));
  const auto pointer = mark < reference.size() ? reference.substr(mark + 1) : "";
  return {in, &in->at(json::json_pointer(pointer))};
}

void add(const Part& part, Parts& parts) {
  if (const auto reference = part.schema->find("$ref"); reference != part.schema->end())
    return add(resolve(part, reference->get<std::string>()), parts);
  parts.push_back(part);
  for (const auto* choice : {"anyOf", "allOf"})
    if (const auto list = part.schema->find(choice); list != part.schema->end())
      for (const auto& each : *list) add({part.document, &each}, parts);
}

}  // namespace

Parts parts_of(std::string_view schema) {
  Parts parts;
  if (const auto* found = document(schema)) add({found, found}, parts);
  return parts;
}

Parts below(const Parts& parts, const std::string& name) {
  Parts inner;
  for (const auto& part : parts) {
    const auto fields = part.schema->find("properties");
    const auto others = part.schema->find("additionalProperties");
    if (fields != part.schema->end() && fields->contains(name))
      add({part.document, &(*fields)[name]}, inner);
    else if (others != part.schema->end() && others->is_object())
      add({part.document, &*others}, inner);
  }
  return inner;
}

Parts items_of(const Parts& parts) {
  Parts inner;
  for (const auto& part : parts)
    if (const auto items = part.schema->find("items"); items != part.schema->end())
      add({part.document, &*items}, inner);
  return inner;
}

std::set<std::string> names_of(const Parts& parts) {
  std::set<std::string> names;
  for (const auto& part : parts)
    if (const auto fields = part.schema->find("properties"); fields != part.schema->end())
      for (const auto& [name, unused] : fields->items()) names.insert(name);
  return names;
}

}  // namespace drover::schemas

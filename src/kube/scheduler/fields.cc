#include "kube/scheduler/fields.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/shorten.h"

namespace drover::kube::scheduler {

using nlohmann::json;

namespace {

const json& nothing() {
  static const json value;
  return value;
}

const json& no_items() {
  static const json value = json::array();
  return value;
}

}  // namespace

const json& FieldReader::field(const json& object, const char* name) {
  if (!object.is_object()) return nothing();
  const auto found = object.find(name);
  return found == object.end() ? nothing() : *found;
}

const json& FieldReader::object(const json& object, const char* name) {
  const auto& value = field(object, name);
  if (value.is_object() || value.is_null()) return value;
  wrong_kind(name, "object");
  return nothing();
}

const json& FieldReader::list(const json& object, const char* name) {
  const auto& value = field(object, name);
  if (value.is_array()) return value;
  if (!value.is_null()) wrong_kind(name, "list");
  return no_items();
}

const json& FieldReader::objects(const json& object, const char* name) {
  const auto& items = list(object, name);
  for (const auto& item : items) {
    if (item.is_object()) continue;
    wrong_kind(name, "list of objects");
    return no_items();
  }
  return items;
}

std::string FieldReader::text(const json& object, const char* name) {
  const auto& value = field(object, name);
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_null()) wrong_kind(name, "text");
  return "";
}

std::optional<std::int64_t> FieldReader::number(const json& object, const char* name) {
  const auto& value = field(object, name);
  if (value.is_null()) return std::nullopt;
  if (value.is_number_integer() &&
      (!value.is_number_unsigned() || std::in_range<std::int64_t>(value.get<std::uint64_t>())))
    return value.get<std::int64_t>();
  wrong_kind(name, "whole number");
  return std::nullopt;
}

bool FieldReader::flag(const json& object, const char* name) {
  const auto& value = field(object, name);
  if (!value.is_boolean() && !value.is_null()) wrong_kind(name, "boolean");
  return value == true;
}

std::vector<std::string> FieldReader::texts(const json& object, const char* name) {
  std::vector<std::string> texts;
  for (const auto& item : list(object, name)) {
    if (item.is_string())
      texts.push_back(item.get<std::string>());
    else
      wrong_kind(name, "list of texts");
  }
  return texts;
}

std::map<std::string, std::string, std::less<>> FieldReader::text_map(const json& object, const char* name) {
  std::map<std::string, std::string, std::less<>> map;
  for (const auto& [key, value] : this->object(object, name).items()) {
    if (value.is_string())
      map.emplace(key, value.get<std::string>());
    else if (!value.is_null())
      wrong_kind(name, "map of texts");
  }
  return map;
}

Quantities FieldReader::quantities(const json& object, const char* name) {
  Quantities quantities;
  for (const auto& [key, value] : this->object(object, name).items()) {
    if (!value.is_string() && !value.is_number()) {
      if (!value.is_null()) wrong_kind(name, "map of quantities");
      continue;
    }
    auto quantity = parse_nanos(value.is_string() ? value.get_ref<const std::string&>() : value.dump());
    if (quantity)
      quantities.emplace(key, *quantity);
    else
      mistake(fmt::format("'{}' of '{}': {}", shortened(key), name, quantity.error().message));
  }
  return quantities;
}

void FieldReader::wrong_kind(const char* name, std::string_view kind) {
  mistake(fmt::format("the field '{}' is no {}", name, kind));
}

std::string FieldReader::name(const json& object) {
  auto name = text(this->object(object, "metadata"), "name");
  if (name.empty()) mistake("it has no name");
  return name;
}

void FieldReader::mistake(std::string message) {
  if (!mistake_) mistake_ = Error{ErrorKind::kInvalid, std::move(message), "", ""};
}

Status FieldReader::status(std::string_view what) const {
  if (mistake_) return Failure(context(*mistake_, what));
  return {};
}

}  // namespace drover::kube::scheduler

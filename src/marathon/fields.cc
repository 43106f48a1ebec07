#include "marathon/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace drover::marathon {

using nlohmann::json;

Fields::Fields(const json& value, Mistakes& mistakes, std::string path)
    : value_(&value), mistakes_(&mistakes), path_(std::move(path)) {
  if (!value.is_object()) mistakes_->wrong_type(path_of(""), "error.expected.jsobject");
}

std::string Fields::path_of(const std::string& name) const {
  if (name.empty()) return path_.empty() ? "/" : path_;
  return path_ + "/" + name;
}

const json* Fields::raw(const std::string& name) const {
  if (!value_->is_object()) return nullptr;
  const auto found = value_->find(name);
  return found == value_->end() || found->is_null() ? nullptr : &*found;
}

void Fields::refuse(const std::string& name, std::string text) {
  mistakes_->broken_rule(path_of(name), std::move(text));
}

void Fields::wrong_type(const std::string& name, std::string code) {
  mistakes_->wrong_type(path_of(name), std::move(code));
}

std::optional<std::string> Fields::text(const std::string& name, std::size_t min_length) {
  const auto* field = raw(name);
  if (field == nullptr) return std::nullopt;
  if (!field->is_string()) {
    wrong_type(name, "error.expected.jsstring");
    return std::nullopt;
  }
  auto value = field->get<std::string>();
  if (value.size() < min_length) {
    wrong_type(name, "error.minLength");
    return std::nullopt;
  }
  if (value.find('\0') != std::string::npos) {
    refuse(name, "must not contain a zero byte");
    return std::nullopt;
  }
  return value;
}

std::optional<double> Fields::number(const std::string& name, double min, double max) {
  const auto* field = raw(name);
  if (field == nullptr) return std::nullopt;
  if (!field->is_number()) {
    wrong_type(name, "error.expected.jsnumber");
    return std::nullopt;
  }
  const auto value = field->get<double>();
  if (value >= min && value <= max) return value;
  wrong_type(name, value < min ? "error.min" : "error.max");
  return std::nullopt;
}

std::optional<std::int64_t> Fields::whole(const std::string& name, std::int64_t min, std::int64_t max) {
  const auto* field = raw(name);
  if (field == nullptr) return std::nullopt;
  if (!field->is_number()) {
    wrong_type(name, "error.expected.jsnumber");
    return std::nullopt;
  }
  const auto value = field->get<double>();
  if (value != std::floor(value) || std::abs(value) > static_cast<double>(kMaxInt32)) {
    wrong_type(name, "error.expected.int");
    return std::nullopt;
  }
  const auto whole = static_cast<std::int64_t>(value);
  if (whole >= min && whole <= max) return whole;
  wrong_type(name, whole < min ? "error.min" : "error.max");
  return std::nullopt;
}

std::optional<bool> Fields::flag(const std::string& name) {
  const auto* field = raw(name);
  if (field == nullptr) return std::nullopt;
  if (field->is_boolean()) return field->get<bool>();
  wrong_type(name, "error.expected.jsboolean");
  return std::nullopt;
}

std::optional<std::vector<std::string>> Fields::texts(const std::string& name) {
  const auto* field = raw(name);
  if (field == nullptr) return std::nullopt;
  if (!field->is_array()) {
    wrong_type(name, "error.expected.jsarray");
    return std::nullopt;
  }
  std::vector<std::string> values;
  for (std::size_t i = 0; i < field->size(); ++i) {
    const auto& item = (*field)[i];
    if (!item.is_string())
      wrong_type(fmt::format("{}({})", name, i), "error.expected.jsstring");
    else if (values.emplace_back(item.get<std::string>()).find('\0') != std::string::npos)
      refuse(fmt::format("{}({})", name, i), "must not contain a zero byte");
  }
  return values;
}

std::optional<std::map<std::string, std::string>> Fields::text_map(const std::string& name) {
  const auto* field = raw(name);
  if (field == nullptr) return std::nullopt;
  if (!field->is_object()) {
    wrong_type(name, "error.expected.jsobject");
    return std::nullopt;
  }
  std::map<std::string, std::string> values;
  for (const auto& [key, item] : field->items()) {
    if (!item.is_string())
      wrong_type(name + "/" + key, "error.expected.jsstring");
    else if (values.emplace(key, item.get<std::string>()).first->second.find('\0') != std::string::npos)
      refuse(name + "/" + key, "must not contain a zero byte");
  }
  return values;
}

std::optional<std::size_t> Fields::choice(const std::string& name, std::span<const std::string_view> words) {
  const auto word = text(name);
  if (!word) return std::nullopt;
  const auto found = std::find(words.begin(), words.end(), *word);
  if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
  wrong_type(name, "error.unknown.enum.literal");
  return std::nullopt;
}

std::optional<Fields> Fields::object(const std::string& name) {
  const auto* field = raw(name);
  if (field == nullptr) return std::nullopt;
  if (!field->is_object()) {
    wrong_type(name, "error.expected.jsobject");
    return std::nullopt;
  }
  return Fields(*field, *mistakes_, path_of(name));
}

std::optional<std::vector<Fields>> Fields::objects(const std::string& name) {
  const auto* field = raw(name);
  if (field == nullptr) return std::nullopt;
  if (!field->is_array()) {
    wrong_type(name, "error.expected.jsarray");
    return std::nullopt;
  }
  std::vector<Fields> values;
  for (std::size_t i = 0; i < field->size(); ++i) {
    const auto path = fmt::format("{}({})", path_of(name), i);
    if ((*field)[i].is_object())
      values.emplace_back((*field)[i], *mistakes_, path);
    else
      mistakes_->wrong_type(path, "error.expected.jsobject");
  }
  return values;
}

json number_json(double value) {
  constexpr double kExact = 9007199254740992.0;  // 2^53
  if (value == std::floor(value) && std::abs(value) < kExact) return static_cast<std::int64_t>(value);
  return value;
}

}  // namespace drover::marathon

#pragma once

// Fields of what Marathon's and Chronos' APIs answer. What is not there, or of another type, is empty. Pure.

#include <nlohmann/json.hpp>
#include <string>

namespace drover::cli {

inline std::string text_in(const nlohmann::json& value, const char* field) {
  if (!value.is_object()) return "";
  const auto found = value.find(field);
  return found != value.end() && found->is_string() ? found->get<std::string>() : "";
}

inline int count_in(const nlohmann::json& value, const char* field) {
  if (!value.is_object()) return 0;
  const auto found = value.find(field);
  return found != value.end() && found->is_number_integer() ? found->get<int>() : 0;
}

inline nlohmann::json list_in(const nlohmann::json& value, const char* field) {
  if (!value.is_object()) return nlohmann::json::array();
  const auto found = value.find(field);
  return found != value.end() && found->is_array() ? *found : nlohmann::json::array();
}

}  // namespace drover::cli

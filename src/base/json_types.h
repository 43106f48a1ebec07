#pragma once

// How types of the standard library stand in stored JSON: times as text, durations as milliseconds, what is
// absent as null. For `.cc` files that use the macros of nlohmann-json.

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "base/units.h"

namespace nlohmann {

template <typename Rep, typename Period>
struct adl_serializer<std::chrono::duration<Rep, Period>> {
  static void to_json(json& value, std::chrono::duration<Rep, Period> duration) { value = duration.count(); }
  static void from_json(const json& value, std::chrono::duration<Rep, Period>& duration) {
    duration = std::chrono::duration<Rep, Period>(value.get<Rep>());
  }
};

template <>
struct adl_serializer<drover::TimePoint> {
  static void to_json(json& value, drover::TimePoint time) { value = drover::format_time(time); }
  static void from_json(const json& value, drover::TimePoint& time) {
    const auto parsed = drover::parse_time(value.get<std::string>());
    if (!parsed) throw std::invalid_argument(parsed.error().message);
    time = *parsed;
  }
};

template <typename T>
struct adl_serializer<std::optional<T>> {
  static void to_json(json& value, const std::optional<T>& optional) {
    value = optional ? json(*optional) : json();
  }
  static void from_json(const json& value, std::optional<T>& optional) {
    optional = value.is_null() ? std::nullopt : std::optional(value.get<T>());
  }
};

}  // namespace nlohmann

namespace drover {

/// What the journal holds as a value; kCorrupt with the reason when it is none. `what` names it: "A stored
/// service".
template <typename T>
Result<T> from_stored(const nlohmann::json& value, std::string_view what) {
  try {
    return value.get<T>();
  } catch (const std::exception& error) {
    return fail(ErrorKind::kCorrupt, std::string(what) + " is damaged: " + error.what());
  }
}

}  // namespace drover

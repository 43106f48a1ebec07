#pragma once

// Reads one JSON object of Marathon's wire field by field, and gathers all mistakes. Fields that nobody reads
// are no mistake: Marathon takes them. Pure; the object that is read must outlive it.

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "marathon/refusal.h"

namespace drover::marathon {

inline constexpr std::int64_t kMaxInt32 = 2'147'483'647;

class Fields {
 public:
  /// `path` is where the object stands: "" for the whole document.
  Fields(const nlohmann::json& value, Mistakes& mistakes, std::string path = "");

  // What is absent or null, or wrong (which is recorded), reads as nullopt.
  std::optional<std::string> text(const std::string& name, std::size_t min_length = 0);
  std::optional<double> number(const std::string& name, double min, double max);
  std::optional<std::int64_t> whole(const std::string& name, std::int64_t min, std::int64_t max = kMaxInt32);
  std::optional<bool> flag(const std::string& name);
  std::optional<std::vector<std::string>> texts(const std::string& name);
  std::optional<std::map<std::string, std::string>> text_map(const std::string& name);
  std::optional<std::size_t> choice(const std::string& name, std::span<const std::string_view> words);
  std::optional<Fields> object(const std::string& name);
  /// nullopt when the list is absent; its members that are no objects are recorded and left out.
  std::optional<std::vector<Fields>> objects(const std::string& name);
  /// As it stands; nullptr when absent or null.
  const nlohmann::json* raw(const std::string& name) const;
  bool has(const std::string& name) const { return raw(name) != nullptr; }

  /// A rule broken by the field, or by the whole object for "".
  void refuse(const std::string& name, std::string text);
  void wrong_type(const std::string& name, std::string code);
  std::string path_of(const std::string& name) const;

 private:
  const nlohmann::json* value_;
  Mistakes* mistakes_;
  std::string path_;
};

/// Without a fraction where there is none: 128, not 128.0.
nlohmann::json number_json(double value);

}  // namespace drover::marathon

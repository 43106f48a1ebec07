#pragma once

// Which apps are meant by their labels: "a==b, c!=d, e in (f,g), h notin (i), j". Pure.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace drover::api::marathon_v2 {

/// One demand on one label.
struct LabelRule {
  std::string label;
  enum class Kind { kExists, kIn, kNotIn } kind = Kind::kExists;
  std::vector<std::string> values;

  bool operator==(const LabelRule&) const = default;
};

/// All rules must hold; `\` takes the next character as it is. "" is no rule.
Result<std::vector<LabelRule>> parse_label_selector(std::string_view text);

/// A label that is absent is not in any set.
bool matches(const std::vector<LabelRule>& rules, const std::map<std::string, std::string>& labels);

}  // namespace drover::api::marathon_v2

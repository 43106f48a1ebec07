#pragma once

// Semantic versions as attributes of devices have them. Pure.

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace drover::cel {

struct Semver {
  std::uint64_t major = 0, minor = 0, patch = 0;
  std::vector<std::variant<std::uint64_t, std::string>> prerelease;  ///< numbers come before words

  static Result<Semver> parse(std::string_view text);
  /// Also 'v1.2' and '01.2.3': what is missing is 0.
  static Result<Semver> parse_normalized(std::string_view text);

  /// What was built does not count.
  std::strong_ordering operator<=>(const Semver& other) const;
  bool operator==(const Semver& other) const { return (*this <=> other) == std::strong_ordering::equal; }
};

}  // namespace drover::cel

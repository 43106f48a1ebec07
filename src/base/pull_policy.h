#pragma once

// When an image is looked up in its registry again.

#include <array>
#include <string_view>

namespace drover {

enum class PullPolicy {
  kMissing,  ///< only when it is not on the machine
  kAlways,   ///< each time: its name may mean another image by now
  kNever,
};

/// By their values.
inline constexpr std::array<std::string_view, 3> kPullPolicyNames = {"missing", "always", "never"};

constexpr std::string_view name_of(PullPolicy policy) {
  return kPullPolicyNames[static_cast<std::size_t>(policy)];
}

}  // namespace drover

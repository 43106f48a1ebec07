#pragma once

// What keeps the holder of a share of a GPU to it, by the words that people and programs are told.

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace drover::gpu {

inline constexpr std::string_view kCounted = "counted";  ///< nothing does
/// Our libraries hold programs to it, and a referee finds those that go round them (docs/shares.md).
inline constexpr std::string_view kGuarded = "guarded";
inline constexpr std::string_view kHard = "hard";  ///< the hardware or the driver itself does

/// " (counted, not enforced)", " (guarded)": behind what is told of a share; "" without a tier.
inline std::string tier_in_words(std::string_view tier) {
  if (tier.empty()) return "";
  return tier == kCounted ? " (counted, not enforced)" : fmt::format(" ({})", tier);
}

}  // namespace drover::gpu

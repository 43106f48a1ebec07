#pragma once

// How good a place is, as policies say it. A value.

#include <compare>
#include <cstdint>

namespace drover::placement {

/// Smaller is better.
struct Score {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  auto operator<=>(const Score&) const = default;
};
/// Not smaller than where nothing fits; every real score is smaller.
inline constexpr Score kNoScore{~std::uint64_t{0}, 0};

}  // namespace drover::placement

#pragma once

// How good a place is, as policies say it. A value.

#include <compare>
#include <cstdint>

namespace drover::placement {

/// Smaller is better.
struct Score {
  std::uint64_t high = ~std::uint64_t{0};
  std::uint64_t low = ~std::uint64_t{0};

  auto operator<=>(const Score&) const = default;
};
inline constexpr Score kNoScore{};  ///< larger than any

}  // namespace drover::placement

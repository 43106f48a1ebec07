#pragma once

// What keeps the holder of a share of a GPU to it, by the words that people and programs are told.

#include <string_view>

namespace drover::gpu {

inline constexpr std::string_view kCounted = "counted";  ///< nothing does
/// Our libraries hold programs to it, and a referee finds those that go round them (docs/shares.md).
inline constexpr std::string_view kGuarded = "guarded";

}  // namespace drover::gpu

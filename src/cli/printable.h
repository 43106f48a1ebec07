#pragma once

// Text of others, such as names, commands and reasons, on a terminal: what a terminal would obey instead of
// showing it is taken out. Those are control characters of ASCII and of Latin-1 (both in UTF-8), and marks
// that turn the order of letters round. Pure.

#include <string>
#include <string_view>

namespace drover::cli {

/// One '?' for each. Of several lines one is made.
std::string printable(std::string_view text);
/// The same, but for line ends: for text that is put together of lines already.
std::string printable_lines(std::string_view text);
/// JSON with the same value, in which each is written as \uXXXX.
std::string printable_json(std::string_view text);

}  // namespace drover::cli

#pragma once

// Texts as CEL has them: of code points. And numbers as Go reads and writes them. Pure.

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"

namespace drover::cel {

/// False for what is no code point.
bool append_utf8(std::string& text, std::uint32_t code_point);
bool is_utf8(std::string_view text);
/// Where each code point begins, and the end. Of bytes that are no UTF-8, each is one.
std::vector<std::size_t> code_points(std::string_view text);

/// Digits alone, with a sign; none where it does not fit.
template <typename T>
std::optional<T> parse_whole(std::string_view text, int base = 10) {
  if (text.starts_with('+') && std::is_signed_v<T> && !text.substr(1).starts_with('-')) text.remove_prefix(1);
  T number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}
/// None for what is no number, is too large, or is written in hexadecimal.
std::optional<double> parse_double(std::string_view text);
/// As Go's %g.
std::string to_text(double number);

}  // namespace drover::cel

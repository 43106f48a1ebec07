#pragma once

// Letters and blanks of ASCII, whatever the locale. Pure.

#include <algorithm>
#include <string>
#include <string_view>

namespace drover {

constexpr char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

inline std::string lower(std::string_view text) {
  std::string result(text);
  for (auto& c : result) c = lower(c);
  return result;
}

inline bool equal_without_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, [](char c) { return lower(c); }, [](char c) { return lower(c); });
}

/// Without the blanks, tabs and line ends around it.
inline std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const auto first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

}  // namespace drover

#include "cli/printable.h"

#include <fmt/format.h>

#include <cstddef>

namespace drover::cli {
namespace {

/// A character that a terminal obeys; no bytes: it is another one.
struct Trick {
  std::size_t bytes = 0;
  unsigned code = 0;
};

bool turns_order(unsigned code) {
  return code == 0x061C || code == 0x200E || code == 0x200F || (code >= 0x202A && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069);
}

/// What `text` begins with. Only characters of up to three bytes can be such.
Trick trick_at(std::string_view text) {
  const auto byte = [&](std::size_t at) {
    return at < text.size() ? static_cast<unsigned char>(text[at]) : 0U;
  };
  const auto continues = [&](std::size_t at) { return (byte(at) & 0xC0U) == 0x80; };
  const unsigned first = byte(0);
  if (first < 0x20 || first == 0x7F) return {1, first};
  if ((first & 0xE0U) == 0xC0 && continues(1)) {
    const auto code = (first & 0x1FU) << 6U | (byte(1) & 0x3FU);
    if ((code >= 0x80 && code < 0xA0) || turns_order(code)) return {2, code};
  }
  if ((first & 0xF0U) == 0xE0 && continues(1) && continues(2)) {
    const auto code = (first & 0x0FU) << 12U | (byte(1) & 0x3FU) << 6U | (byte(2) & 0x3FU);
    if (turns_order(code)) return {3, code};
  }
  return {};
}

template <typename Replacement>
std::string replace_tricks(std::string_view text, Replacement replacement) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const auto trick = trick_at(text);
    if (trick.bytes > 0)
      result += replacement(trick.code);
    else
      result += text.front();
    text.remove_prefix(trick.bytes > 0 ? trick.bytes : 1);
  }
  return result;
}

}  // namespace

std::string printable(std::string_view text) {
  return replace_tricks(text, [](unsigned) { return "?"; });
}

std::string printable_lines(std::string_view text) {
  return replace_tricks(text, [](unsigned code) { return code == '\n' ? "\n" : "?"; });
}

std::string printable_json(std::string_view text) {
  return replace_tricks(
      text, [](unsigned code) { return code == '\n' ? std::string("\n") : fmt::format("\\u{:04x}", code); });
}

}  // namespace drover::cli

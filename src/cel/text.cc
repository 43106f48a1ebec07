#include "cel/text.h"

#include <array>
#include <cmath>
#include <limits>

namespace drover::cel {
namespace {

/// How many bytes the first code point has; 0 when it is none.
std::size_t first_size(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4) return 0;
  for (std::size_t i = 1; i < size; ++i)
    if ((byte(i) & 0xC0U) != 0x80) return 0;
  const bool wrong = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) >= 0xA0) ||
                     (first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) >= 0x90);
  return wrong ? 0 : size;
}

}  // namespace

bool append_utf8(std::string& text, std::uint32_t code_point) {
  if (code_point > 0x10FFFF || (code_point >= 0xD800 && code_point < 0xE000)) return false;
  const auto add = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
  if (code_point < 0x80) {
    add(code_point);
    return true;
  }
  const int more = code_point < 0x800 ? 1 : code_point < 0x10000 ? 2 : 3;
  constexpr std::array<std::uint32_t, 4> kFirst{0, 0xC0, 0xE0, 0xF0};
  add(kFirst.at(static_cast<std::size_t>(more)) | code_point >> (6U * static_cast<unsigned>(more)));
  for (int i = more - 1; i >= 0; --i) add(0x80 | (code_point >> (6U * static_cast<unsigned>(i)) & 0x3FU));
  return true;
}

bool is_utf8(std::string_view text) {
  for (std::size_t at = 0, size = 0; at < text.size(); at += size)
    if ((size = first_size(text.substr(at))) == 0) return false;
  return true;
}

std::vector<std::size_t> code_points(std::string_view text) {
  std::vector<std::size_t> begins;
  for (std::size_t at = 0; at < text.size(); at += std::max<std::size_t>(first_size(text.substr(at)), 1))
    begins.push_back(at);
  begins.push_back(text.size());
  return begins;
}

std::optional<double> parse_double(std::string_view text) {
  const bool sign = text.starts_with('-') || text.starts_with('+');
  const bool negative = text.starts_with('-');
  if (sign) text.remove_prefix(1);
  const auto word = lower(text);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (word == "inf" || word == "infinity") return negative ? -kInfinity : kInfinity;
  if (word == "nan" && !sign) return std::numeric_limits<double>::quiet_NaN();
  if (text.empty() || (text[0] != '.' && (text[0] < '0' || text[0] > '9'))) return std::nullopt;
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (end != text.data() + text.size()) return std::nullopt;
  if (error == std::errc::result_out_of_range) {  // too large is none, too small is zero
    const bool small = text.starts_with("0.") || text.starts_with('.') || word.find("e-") != word.npos;
    if (!small) return std::nullopt;
    number = 0;
  } else if (error != std::errc()) {
    return std::nullopt;
  }
  return negative ? -number : number;
}

std::string to_text(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number < 0 ? "-Inf" : "+Inf";
  std::array<char, 512> buffer{};
  const auto written = [&](std::chars_format format) {
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number, format).ptr;
    return std::string(buffer.data(), end);
  };
  const auto scientific = written(std::chars_format::scientific);
  const int exponent = *parse_whole<int>(std::string_view(scientific).substr(scientific.find('e') + 1));
  constexpr int kShortest = 6;
  return exponent < -4 || exponent >= kShortest ? scientific : written(std::chars_format::fixed);
}

}  // namespace drover::cel

#include "kube/dra/quantity.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <limits>
#include <optional>

#include "base/shorten.h"

namespace drover::kube::dra {
namespace {

// No fraction of more digits fits below 2^63 and says anything more.
constexpr std::size_t kMostDigits = 18;
constexpr std::array<std::string_view, 7> kBinary{"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
constexpr std::array<std::string_view, 7> kDecimal{"", "k", "M", "G", "T", "P", "E"};

__extension__ using Wide = unsigned __int128;

/// What a number is multiplied with: 2^binary * 10^decimal.
struct Scale {
  int binary = 0;
  int decimal = 0;
};

std::optional<Scale> scale_of(std::string_view suffix) {
  for (std::size_t i = 0; i < kBinary.size(); ++i) {
    if (suffix == kBinary.at(i)) return Scale{static_cast<int>(i) * 10, 0};
    if (suffix == kDecimal.at(i)) return Scale{0, static_cast<int>(i) * 3};
  }
  constexpr std::array<std::string_view, 3> kSmall{"m", "u", "n"};
  for (std::size_t i = 0; i < kSmall.size(); ++i)
    if (suffix == kSmall.at(i)) return Scale{0, -3 * (static_cast<int>(i) + 1)};
  if (suffix.size() < 2 || (suffix[0] != 'e' && suffix[0] != 'E')) return std::nullopt;
  suffix.remove_prefix(suffix[1] == '+' ? 2 : 1);
  int exponent = 0;
  const auto [end, error] = std::from_chars(suffix.data(), suffix.data() + suffix.size(), exponent);
  if (error != std::errc() || end != suffix.data() + suffix.size()) return std::nullopt;
  return Scale{0, exponent};
}

/// nullopt when it is too large.
std::optional<std::int64_t> scaled(Wide number, Scale scale) {
  constexpr auto kMost = static_cast<Wide>(std::numeric_limits<std::int64_t>::max());
  number <<= scale.binary;
  for (; number != 0 && scale.decimal > 0; --scale.decimal)
    if ((number *= 10) > kMost << 60U) return std::nullopt;
  bool rest = false;
  for (; number != 0 && scale.decimal < 0; ++scale.decimal) {
    rest = rest || number % 10 != 0;
    number /= 10;
  }
  number += rest ? 1 : 0;
  if (number > kMost) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

template <typename Suffixes>
std::string shortest(std::uint64_t number, std::uint64_t base, const Suffixes& suffixes) {
  std::size_t suffix = 0;
  for (; number != 0 && number % base == 0 && suffix + 1 < suffixes.size(); ++suffix) number /= base;
  return fmt::format("{}{}", number, suffixes.at(suffix));
}

}  // namespace

Result<std::int64_t> parse_quantity(std::string_view text) {
  const auto wrong = [&](const char* why) {
    return fail(ErrorKind::kInvalid, fmt::format("the quantity '{}' {}", shortened(std::string(text)), why),
                "it is written as in '80Gi' or '500'");
  };
  if (text.starts_with('-')) return wrong("is negative");
  auto rest = text.starts_with('+') ? text.substr(1) : text;
  Wide number = 0;
  std::size_t digits = 0;
  int behind_point = 0;
  bool point = false;
  while (!rest.empty() && (('0' <= rest[0] && rest[0] <= '9') || (rest[0] == '.' && !point))) {
    if (rest[0] == '.') {
      point = true;
    } else {
      if (++digits > kMostDigits) return wrong("has too many digits");
      number = number * 10 + static_cast<Wide>(rest[0] - '0');
      behind_point += point ? 1 : 0;
    }
    rest.remove_prefix(1);
  }
  auto scale = scale_of(rest);
  if (digits == 0 || !scale) return wrong("is none");
  scale->decimal -= behind_point;
  const auto value = scaled(number, *scale);
  if (!value) return wrong("is too large");
  return *value;
}

std::string bytes_quantity(std::uint64_t bytes) {
  return shortest(bytes, 1024, kBinary);
}

std::string count_quantity(std::uint64_t count) {
  return shortest(count, 1000, kDecimal);
}

}  // namespace drover::kube::dra

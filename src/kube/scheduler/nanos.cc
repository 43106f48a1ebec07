#include "kube/scheduler/nanos.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>

#include "base/shorten.h"

namespace drover::kube::scheduler {
namespace {

__extension__ using Wide = unsigned __int128;

// Those of 2^63 - 1: the API server gives none with more.
constexpr std::size_t kMostDigits = 19;
constexpr auto kMostWhole = static_cast<Wide>(std::numeric_limits<std::int64_t>::max());
constexpr Wide kMostNanos = kMostWhole * 1'000'000'000U;
constexpr std::array<std::string_view, 7> kBinary{"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
constexpr std::array<std::string_view, 7> kDecimal{"", "k", "M", "G", "T", "P", "E"};

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
  return Scale{0, std::clamp(exponent, -1000, 1000)};
}

/// A number as it is written.
struct Written {
  Wide number = 0;
  Scale scale;
};

/// Fractions are rounded up.
Nanos nanos(const Written& written) {
  constexpr auto kSafe = kMostWhole << 60U;  // times ten, it still fits
  auto number = written.number << written.scale.binary;
  auto decimal = written.scale.decimal + 9;
  for (; number != 0 && decimal > 0; --decimal) {
    if (number > kSafe) return static_cast<Nanos>(kMostNanos);
    number *= 10;
  }
  bool rest = false;
  for (; number != 0 && decimal < 0; ++decimal) {
    rest = rest || number % 10 != 0;
    number /= 10;
  }
  return static_cast<Nanos>(std::min(kMostNanos, number + (rest ? 1 : 0)));
}

Failure not_a_quantity(std::string_view text, const char* why) {
  return fail(ErrorKind::kInvalid, fmt::format("the quantity '{}' {}", shortened(std::string(text)), why),
              "it is written as in '80Gi' or '500'");
}

Result<Written> read_quantity(std::string_view text) {
  if (text.starts_with('-')) return not_a_quantity(text, "is negative");
  auto rest = text.starts_with('+') ? text.substr(1) : text;
  Written written;
  std::size_t digits = 0;
  int behind_point = 0;
  bool point = false;
  while (!rest.empty() && (('0' <= rest[0] && rest[0] <= '9') || (rest[0] == '.' && !point))) {
    if (rest[0] == '.') {
      point = true;
    } else {
      if (++digits > kMostDigits) return not_a_quantity(text, "has too many digits");
      written.number = written.number * 10 + static_cast<Wide>(rest[0] - '0');
      behind_point += point ? 1 : 0;
    }
    rest.remove_prefix(1);
  }
  const auto scale = scale_of(rest);
  if (digits == 0 || !scale) return not_a_quantity(text, "is none");
  written.scale = {scale->binary, scale->decimal - behind_point};
  return written;
}

}  // namespace

Result<Nanos> parse_nanos(std::string_view text) {
  DROVER_TRY(const auto written, read_quantity(text));
  return nanos(written);
}

}  // namespace drover::kube::scheduler

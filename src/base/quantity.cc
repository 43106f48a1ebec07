#include "base/quantity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/shorten.h"

namespace drover {
namespace {

constexpr int kNano = -9;
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

std::string_view digits_of(std::string_view& text) {
  const auto digits = text.substr(0, std::min(text.find_first_not_of("0123456789"), text.size()));
  text.remove_prefix(digits.size());
  return digits;
}

}  // namespace

/// A quantity, taken apart: digits before and behind the point, and what they are multiplied with.
struct Quantity::Text {
  bool negative = false;
  std::string_view whole, fraction;
  bool binary = false;
  int exponent = 0;  ///< of 2 or 10

  std::size_t digits() const { return std::max<std::size_t>(whole.size(), 1) + fraction.size(); }

  std::optional<Wide> number() const {
    constexpr std::size_t kMostDigits = 37;
    if (whole.size() + fraction.size() > kMostDigits) return std::nullopt;
    Wide result = 0;
    for (const auto part : {whole, fraction})
      for (const char digit : part) result = result * 10 + (digit - '0');
    return negative ? -result : result;
  }

  bool read_suffix(std::string_view suffix) {
    constexpr std::string_view kDecimal = "num kMGTPE", kBinary = "KMGTPE";
    if (suffix.empty()) return true;
    if (suffix.size() == 1 && suffix != " " && kDecimal.find(suffix[0]) != kDecimal.npos) {
      exponent = (static_cast<int>(kDecimal.find(suffix[0])) - 3) * 3;
      return true;
    }
    if (suffix.size() == 2 && suffix[1] == 'i' && kBinary.find(suffix[0]) != kBinary.npos) {
      binary = true;
      exponent = (static_cast<int>(kBinary.find(suffix[0])) + 1) * 10;
      return true;
    }
    if (suffix.size() < 2 || (suffix[0] != 'e' && suffix[0] != 'E')) return false;
    suffix.remove_prefix(suffix[1] == '+' ? 2 : 1);
    const auto [end, error] = std::from_chars(suffix.data(), suffix.data() + suffix.size(), exponent);
    using Range = std::numeric_limits<int>;
    if (error == std::errc::result_out_of_range) exponent = suffix[0] == '-' ? Range::min() : Range::max();
    return error != std::errc::invalid_argument && end == suffix.data() + suffix.size();
  }
};

/// value * 10^digits; none when it is too large.
std::optional<Quantity::Wide> Quantity::scaled(Wide value, int digits) {
  constexpr auto kWidest = static_cast<Wide>(~static_cast<unsigned __int128>(0) >> 1U);
  for (; value != 0 && digits > 0; --digits) {
    if (value > kWidest / 10 || value < -(kWidest / 10)) return std::nullopt;
    value *= 10;
  }
  return value;
}

/// What Kubernetes keeps in 64 bits: by the number of digits, not by the value.
std::optional<Quantity> Quantity::small(const Text& text) {
  constexpr int kDigits = 18, kBinaryDigits = 15;
  if (text.binary && !text.fraction.empty()) return std::nullopt;
  const auto digits = static_cast<int>(text.digits());
  const int spare =
      text.binary ? kBinaryDigits - digits - static_cast<int>(static_cast<float>(text.exponent) * 3 / 10) - 1
                  : kDigits - digits;
  Quantity result;
  result.scale_ = (text.binary ? 0 : text.exponent) - static_cast<int>(text.fraction.size());
  if (spare < 0 || result.scale_ < kNano) return std::nullopt;
  result.value_ = *text.number() * (text.binary ? Wide{1} << text.exponent : Wide{1});
  return result;
}

std::optional<Quantity> Quantity::large(const Text& text) {
  auto number = text.number();
  if (!number) return std::nullopt;
  Quantity result;
  result.small_ = false;
  if (*number == 0) return result;
  int scale = -static_cast<int>(text.fraction.size());
  if (text.binary) {
    for (int i = 0; i < text.exponent; ++i) {
      if (scaled(*number, 1) == std::nullopt) return std::nullopt;
      *number *= 2;
    }
  } else {
    scale += text.exponent;
  }
  for (; scale < kNano; ++scale)  // away from zero: who wants a little gets something
    *number = *number / 10 + (*number % 10 == 0 ? 0 : text.negative ? -1 : 1);
  number = scaled(*number, scale - kNano);
  if (!number) return std::nullopt;
  result.value_ = *number;
  result.scale_ = kNano;
  if (const Quantity most(kMost); text.binary && (result > most || result < most.negated())) {
    result.value_ = text.negative ? -Wide{kMost} : Wide{kMost};
    result.scale_ = 0;
  }
  return result;
}

Result<Quantity> Quantity::parse(std::string_view text) {
  const auto wrong = [&](ErrorKind kind, const char* why) {
    return fail(kind, fmt::format("the quantity '{}' {}", shortened(std::string(text)), why),
                "it is written as in '80Gi' or '500'");
  };
  if (text.empty()) return wrong(ErrorKind::kInvalid, "is none");
  Text parts;
  auto rest = text;
  parts.negative = rest.starts_with('-');
  if (parts.negative || rest.starts_with('+')) rest.remove_prefix(1);
  rest.remove_prefix(std::min(rest.find_first_not_of('0'), rest.size()));
  parts.whole = digits_of(rest);
  if (rest.starts_with('.')) {
    rest.remove_prefix(1);
    parts.fraction = digits_of(rest);
  }
  if (!parts.read_suffix(rest)) return wrong(ErrorKind::kInvalid, "is none");
  constexpr int kLargest = 1000;
  if (parts.exponent > kLargest) return wrong(ErrorKind::kUnsupported, "is too large");
  parts.exponent = std::max(parts.exponent, -kLargest);  // less than a billionth in any case
  if (const auto result = small(parts)) return *result;
  if (const auto result = large(parts)) return *result;
  return wrong(ErrorKind::kUnsupported, "is too large or has too many digits");
}

std::strong_ordering Quantity::operator<=>(const Quantity& other) const {
  if (sign() != other.sign()) return sign() <=> other.sign();
  if (scale_ < other.scale_) return 0 <=> (other <=> *this);
  const auto value = scaled(value_, scale_ - other.scale_);
  if (!value) return sign() <=> 0;
  return *value < other.value_   ? std::strong_ordering::less
         : *value > other.value_ ? std::strong_ordering::greater
                                 : std::strong_ordering::equal;
}

Quantity Quantity::negated() const {
  Quantity result = *this;
  result.value_ = -value_;
  return result;
}

Result<Quantity> Quantity::plus(const Quantity& other) const {
  if (is_decimal()) return fail(ErrorKind::kUnsupported, "the first quantity of a sum has too many digits");
  if (small_ && other.small_ && other.value_ == 0) return *this;
  if (small_ && other.small_ && value_ == 0) return other;
  Quantity result;
  result.scale_ = std::min(scale_, other.scale_);
  const auto a = scaled(value_, scale_ - result.scale_);
  const auto b = scaled(other.value_, other.scale_ - result.scale_);
  if (!a || !b || __builtin_add_overflow(*a, *b, &result.value_))
    return fail(ErrorKind::kUnsupported, "the sum of two quantities is too large");
  const auto fits = [](Wide value) { return -Wide{kMost} - 1 <= value && value <= Wide{kMost}; };
  result.small_ = other.small_ && fits(*a) && fits(*b) && fits(result.value_);
  return result;
}

Result<Quantity> Quantity::minus(const Quantity& other) const {
  if (small_ && other.small_ && other.value_ == -Wide{kMost} - 1)  // in 64 bits it is its own opposite
    if (auto result = plus(other); !result || result->small_) return result;
  return plus(other.negated());
}

std::optional<std::int64_t> Quantity::whole() const {
  if (!small_ || scale_ < 0) return std::nullopt;
  return rounded_up();
}

std::optional<std::int64_t> Quantity::rounded_up() const {
  auto value = scaled(value_, scale_);
  if (!value) return std::nullopt;
  for (int scale = scale_; scale < 0; ++scale) *value = *value / 10 + (*value % 10 > 0 ? 1 : 0);
  if (*value > Wide{kMost} || *value < -Wide{kMost} - 1) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

double Quantity::approximate() const {
  const auto value = static_cast<double>(value_);
  return scale_ == 0 ? value : value * std::pow(10.0, scale_);
}

}  // namespace drover

#pragma once

// Kubernetes' quantities ("80Gi", "1.5", "500m"), exact down to 10^-9, and calculated with as
// k8s.io/apimachinery/pkg/api/resource does. Pure.

#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"

namespace drover {

class Quantity {
 public:
  explicit Quantity(std::int64_t whole = 0) : value_(whole) {}
  /// kInvalid for what is no quantity, kUnsupported for what is beyond 10^28.
  static Result<Quantity> parse(std::string_view text);

  int sign() const { return value_ < 0 ? -1 : value_ > 0 ? 1 : 0; }
  std::strong_ordering operator<=>(const Quantity& other) const;
  bool operator==(const Quantity& other) const { return (*this <=> other) == std::strong_ordering::equal; }
  /// kUnsupported when the sum is too large, and for what is_decimal(): Kubernetes changes the quantity
  /// itself then.
  Result<Quantity> plus(const Quantity& other) const;
  Result<Quantity> minus(const Quantity& other) const;
  Quantity negated() const;
  bool is_decimal() const { return !small_; }

  /// None for fractions, and for what Kubernetes keeps as a decimal number of any size: many digits, and
  /// fractions with a binary suffix.
  std::optional<std::int64_t> whole() const;
  /// Fractions rounded up; none beyond 63 bits.
  std::optional<std::int64_t> rounded_up() const;
  double approximate() const;
  /// All of it; none when that is too large.
  __extension__ using Wide = __int128;
  std::optional<Wide> billionths() const { return scaled(value_, scale_ + 9); }

 private:
  struct Text;
  static std::optional<Wide> scaled(Wide value, int digits);
  static std::optional<Quantity> small(const Text& text);
  static std::optional<Quantity> large(const Text& text);

  // value_ * 10^scale_
  Wide value_ = 0;
  int scale_ = 0;
  bool small_ = true;  ///< Kubernetes has it in 64 bits
};

}  // namespace drover

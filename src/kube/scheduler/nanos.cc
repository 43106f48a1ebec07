#include "kube/scheduler/nanos.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/quantity.h"
#include "base/shorten.h"

namespace drover::kube::scheduler {
namespace {

// Those of 2^63 - 1: the API server gives none with more.
constexpr std::ptrdiff_t kMostDigits = 19;
constexpr Nanos kMostNanos = static_cast<Nanos>(std::numeric_limits<std::int64_t>::max()) * 1'000'000'000;

}  // namespace

Result<Nanos> parse_nanos(std::string_view text) {
  const auto wrong = [&](const char* why) {
    return fail(ErrorKind::kInvalid, fmt::format("the quantity '{}' {}", shortened(std::string(text)), why),
                "it is written as in '80Gi' or '500'");
  };
  if (text.starts_with('-')) return wrong("is negative");
  const auto number = text.substr(0, text.find_first_not_of("+.0123456789"));
  const auto digits = std::ranges::count_if(number, [](char c) { return '0' <= c && c <= '9'; });
  if (digits == 0) return wrong("is none");
  if (digits > kMostDigits) return wrong("has too many digits");
  const auto quantity = Quantity::parse(text);
  if (!quantity && quantity.error().kind == ErrorKind::kUnsupported) return kMostNanos;  // it is too large
  if (!quantity) return Failure(quantity.error());
  return std::min(kMostNanos, quantity->billionths().value_or(kMostNanos));
}

}  // namespace drover::kube::scheduler

#include "kube/dra/quantity.h"

#include <fmt/format.h>

#include <array>
#include <limits>

#include "base/quantity.h"
#include "base/shorten.h"

namespace drover::kube::dra {
namespace {

constexpr std::array<std::string_view, 7> kBinary{"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
constexpr std::array<std::string_view, 7> kDecimal{"", "k", "M", "G", "T", "P", "E"};

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
  const auto first = text.find_first_not_of("+.");
  if (first > 1 || text[first] < '0' || text[first] > '9') return wrong("is none");
  DROVER_TRY(const auto quantity, Quantity::parse(text));
  const auto value = quantity.rounded_up();
  if (!value || *value == std::numeric_limits<std::int64_t>::max()) return wrong("is too large");
  return *value;
}

std::string bytes_quantity(std::uint64_t bytes) {
  return shortest(bytes, 1024, kBinary);
}

std::string count_quantity(std::uint64_t count) {
  return shortest(count, 1000, kDecimal);
}

}  // namespace drover::kube::dra

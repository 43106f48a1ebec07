#pragma once

// Versions as numbers between dots: of drivers, of CUDA, of compute capabilities. Pure.

#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace drover {

/// Compared number by number; zeros at the end do not count, so "12" is "12.0". More parts are more:
/// "535.54.03" comes after "535".
class Version {
 public:
  /// At most 8 numbers of at most 9 digits, and nothing but dots between them.
  static std::optional<Version> parse(std::string_view text);

  std::uint32_t major() const { return part(0); }
  std::uint32_t minor() const { return part(1); }

  bool operator==(const Version&) const = default;
  std::strong_ordering operator<=>(const Version&) const = default;

 private:
  std::uint32_t part(std::size_t which) const { return which < parts_.size() ? parts_[which] : 0; }

  std::vector<std::uint32_t> parts_;
};

}  // namespace drover

#pragma once

// Whole numbers out of bytes of either byte order, never past their end. Pure.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace drover::driver {

enum class ByteOrder { kLittle, kBig };

/// nullopt when the number does not lie wholly inside `bytes`.
template <std::unsigned_integral Number>
std::optional<Number> number_at(std::string_view bytes, std::uint64_t offset, ByteOrder order) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(Number)) return std::nullopt;
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(Number); ++i) {
    const auto position = order == ByteOrder::kBig ? i : sizeof(Number) - 1 - i;
    value = value << 8 | static_cast<unsigned char>(bytes[static_cast<std::size_t>(offset) + position]);
  }
  return static_cast<Number>(value);
}

/// The NUL-terminated text at `offset`; nullopt when it does not end within `limit` bytes.
inline std::optional<std::string_view> text_at(std::string_view bytes, std::uint64_t offset,
                                               std::size_t limit) {
  if (offset >= bytes.size()) return std::nullopt;
  const auto text = bytes.substr(static_cast<std::size_t>(offset), limit);
  const auto end = text.find('\0');
  if (end == std::string_view::npos) return std::nullopt;
  return text.substr(0, end);
}

}  // namespace drover::driver

#include "api/mesos/uuid.h"

#include <fmt/format.h>

#include <charconv>

namespace drover::api::mesos {

std::optional<std::string> uuid_bytes(std::string_view text) {
  std::string digits;
  for (const char c : text)
    if (c != '-') digits += c;
  if (text.size() != 36 || digits.size() != 32) return std::nullopt;
  std::string bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    unsigned value = 0;
    const auto* const end = digits.data() + i + 2;
    const auto read = std::from_chars(digits.data() + i, end, value, 16);
    if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
    bytes += static_cast<char>(value);
  }
  return bytes;
}

std::string uuid_text(std::string_view bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned char>(bytes[i]));
  }
  return text;
}

}  // namespace drover::api::mesos

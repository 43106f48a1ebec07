#include "image/text.h"

#include <fmt/format.h>

namespace drover::image {

std::string printable(std::string_view raw) {
  constexpr std::size_t kMost = 200;
  std::string shown;
  for (const char c : raw.substr(0, kMost)) {
    const bool plain = c >= ' ' && c <= '~' && c != '\\';
    shown += plain ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return raw.size() > kMost ? shown + "..." : shown;
}

}  // namespace drover::image

#include "base/version.h"

#include <charconv>

namespace drover {

std::optional<Version> Version::parse(std::string_view text) {
  constexpr std::size_t kMostParts = 8;
  constexpr std::size_t kMostDigits = 9;
  Version version;
  while (true) {
    const auto word = text.substr(0, text.find('.'));
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc() || end != word.data() + word.size() || word.size() > kMostDigits ||
        version.parts_.size() == kMostParts)
      return std::nullopt;
    version.parts_.push_back(number);
    if (word.size() == text.size()) break;
    text.remove_prefix(word.size() + 1);
  }
  while (!version.parts_.empty() && version.parts_.back() == 0) version.parts_.pop_back();
  return version;
}

}  // namespace drover

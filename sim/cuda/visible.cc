#include "sim/cuda/visible.h"

#include <algorithm>
#include <charconv>

namespace drover::sim::cuda {
namespace {

std::optional<std::size_t> position_named(const std::vector<std::string>& uuids, std::string_view name) {
  if (name.starts_with("GPU-")) {
    std::optional<std::size_t> found;
    for (std::size_t i = 0; i < uuids.size(); ++i) {
      if (!uuids[i].starts_with(name)) continue;
      if (found) return std::nullopt;
      found = i;
    }
    return found;
  }
  std::size_t position = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), position);
  const bool whole = error == std::errc() && end == name.data() + name.size();
  return whole && position < uuids.size() ? std::optional(position) : std::nullopt;
}

std::string_view without_blanks(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

}  // namespace

std::vector<std::size_t> visible_devices(const std::vector<std::string>& uuids,
                                         std::optional<std::string_view> value) {
  std::vector<std::size_t> visible;
  if (!value) {
    for (std::size_t i = 0; i < uuids.size(); ++i) visible.push_back(i);
    return visible;
  }
  for (auto rest = *value; !rest.empty();) {
    const auto comma = std::min(rest.find(','), rest.size());
    const auto position = position_named(uuids, without_blanks(rest.substr(0, comma)));
    if (!position) return visible;
    if (std::ranges::find(visible, *position) != visible.end()) return {};
    visible.push_back(*position);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return visible;
}

}  // namespace drover::sim::cuda

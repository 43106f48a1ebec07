#include "base/ranges.h"

#include <fmt/format.h>

namespace drover {

std::string format_ranges(const std::vector<int>& numbers) {
  std::string text;
  for (std::size_t first = 0; first < numbers.size();) {
    auto last = first;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", numbers[first]);
    if (last > first) text += fmt::format("-{}", numbers[last]);
    first = last + 1;
  }
  return text;
}

}  // namespace drover

#include "api/timed_lines.h"

#include <chrono>

#include "base/units.h"

namespace drover::api {

std::string TimedLines::take(std::string_view bytes, std::optional<engine::OutputTime> at) {
  const auto time = (at ? format_time(std::chrono::floor<std::chrono::milliseconds>(*at)) : "-") + " ";
  std::string text;
  while (!bytes.empty()) {
    if (!open_) text += time;
    const auto line_end = bytes.find('\n');
    const auto line = bytes.substr(0, line_end == std::string_view::npos ? line_end : line_end + 1);
    text += line;
    open_ = line.back() != '\n';
    bytes.remove_prefix(line.size());
  }
  return text;
}

}  // namespace drover::api

#include "cli/event_stream.h"

namespace drover::cli {

bool EventStreamParser::feed(std::string_view piece, const std::function<bool(const ServerEvent&)>& handle) {
  for (auto end = piece.find('\n'); end != std::string_view::npos; end = piece.find('\n')) {
    unfinished_ += piece.substr(0, end);
    piece.remove_prefix(end + 1);
    if (unfinished_.ends_with('\r')) unfinished_.pop_back();
    const auto line = std::move(unfinished_);
    unfinished_.clear();
    if (!take_line(line, handle)) return false;
  }
  unfinished_ += piece;
  return true;
}

bool EventStreamParser::take_line(std::string_view line,
                                  const std::function<bool(const ServerEvent&)>& handle) {
  if (line.empty()) {
    const bool go_on = !has_data_ || handle(event_);
    event_ = {"", event_.id, ""};
    has_data_ = false;
    return go_on;
  }
  const auto colon = line.find(':');
  const auto field = line.substr(0, colon);
  auto value = colon == std::string_view::npos ? std::string_view() : line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (field == "event") {
    event_.name = value;
  } else if (field == "id") {
    event_.id = value;
  } else if (field == "data") {
    if (has_data_) event_.data += '\n';
    event_.data += value;
    has_data_ = true;
  }
  return true;
}

}  // namespace drover::cli

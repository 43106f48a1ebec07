#pragma once

// Reads server-sent events (WHATWG HTML, "server-sent events") out of pieces as the network cuts them. Pure.

#include <functional>
#include <string>
#include <string_view>

namespace drover::cli {

struct ServerEvent {
  std::string name;
  std::string id;  ///< the last id that was sent, as the standard says
  std::string data;
};

class EventStreamParser {
 public:
  /// Calls `handle` for each event that is complete. A handler that returns false ends it: so does feed().
  bool feed(std::string_view piece, const std::function<bool(const ServerEvent&)>& handle);

 private:
  bool take_line(std::string_view line, const std::function<bool(const ServerEvent&)>& handle);

  std::string unfinished_;
  ServerEvent event_;
  bool has_data_ = false;
};

}  // namespace drover::cli

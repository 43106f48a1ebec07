#include "api/sse.h"

#include <algorithm>

namespace drover::api {

std::string sse_event(std::string_view name, std::string_view id, std::string_view data) {
  std::string text;
  if (!id.empty()) text.append("id: ").append(id).append("\n");
  if (!name.empty()) text.append("event: ").append(name).append("\n");
  do {
    const auto line = data.substr(0, data.find('\n'));
    text.append("data: ").append(line).append("\n");
    data.remove_prefix(std::min(line.size() + 1, data.size()));
  } while (!data.empty());
  return text + "\n";
}

std::string sse_heartbeat() {
  return ": still here\n\n";
}

}  // namespace drover::api

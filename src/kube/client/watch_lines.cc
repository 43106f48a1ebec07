#include "kube/client/watch_lines.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "kube/client/refusal.h"

namespace drover::kube {
namespace {

constexpr std::array kTypes = {
    std::pair{"ADDED", WatchEventType::kAdded}, std::pair{"MODIFIED", WatchEventType::kModified},
    std::pair{"DELETED", WatchEventType::kDeleted}, std::pair{"BOOKMARK", WatchEventType::kBookmark}};

}  // namespace

Status LineReader::feed(std::string_view piece, const std::function<Status(std::string_view)>& take) {
  for (auto end = piece.find('\n'); end != std::string_view::npos; end = piece.find('\n')) {
    auto line = piece.substr(0, end);
    if (!rest_.empty()) {
      rest_ += line;
      line = rest_;
    }
    if (line.size() > longest_) break;
    if (!line.empty()) DROVER_CHECK_OK(take(line));
    rest_.clear();
    piece.remove_prefix(end + 1);
  }
  rest_ += piece;
  if (rest_.size() <= longest_) return {};
  rest_.clear();
  return fail(ErrorKind::kExhausted,
              fmt::format("the API server sent an object of more than {}", format_bytes(longest_)));
}

Result<WatchEvent> parse_watch_line(std::string_view line, const Selection& selection) {
  const ApiRequest request{.verb = "watch", .path = {selection.resource, selection.name_space}};
  const auto doing = "Failed to watch " + describe(request.path);
  const auto left_out = selection.managed_fields ? LeftOut() : kManagedFields;
  auto parsed = parse_json(line, "the API server's event", left_out);
  if (!parsed) return fail(ErrorKind::kUnavailable, fmt::format("{}: {}", doing, parsed.error().message));
  const auto type = text_at(*parsed, "/type");
  const auto object = parsed->is_object() ? parsed->find("object") : parsed->end();
  if (object == parsed->end() || !object->is_object())
    return fail(ErrorKind::kUnavailable, doing + ": the API server sent an event without an object");
  if (type == "ERROR") return Failure(refusal_error(read_refusal(*object), doing, request));
  for (const auto& [name, known] : kTypes) {
    if (type != name) continue;
    if (text_at(*object, "/metadata/resourceVersion").empty() ||
        (known != WatchEventType::kBookmark && key_of(*object).empty()))
      return fail(ErrorKind::kUnavailable, doing + ": an object has no name or no resourceVersion");
    return WatchEvent{known, std::make_shared<const nlohmann::json>(std::move(*object))};
  }
  return fail(ErrorKind::kUnavailable, doing + ": the API server sent an event of an unknown type");
}

}  // namespace drover::kube

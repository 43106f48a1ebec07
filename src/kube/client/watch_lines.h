#pragma once

// What a watch sends: one JSON object a line, {"type": "ADDED", "object": {…}}. Pure.

#include <functional>
#include <string>
#include <string_view>

#include "base/json_items.h"
#include "base/result.h"
#include "kube/client/api.h"

namespace drover::kube {

/// An object may have 1.5 MiB in etcd, and a little more in the server.
inline constexpr std::size_t kLongestWatchLine = 16 << 20;

inline constexpr LeftOut kManagedFields = {"metadata", "managedFields"};

/// Puts lines together out of pieces as they come.
class LineReader {
 public:
  explicit LineReader(std::size_t longest = kLongestWatchLine) : longest_(longest) {}

  /// Calls `take` with each line that is whole now, without its end; empty ones are left out. kExhausted
  /// when one is too long; what `take` fails with.
  Status feed(std::string_view piece, const std::function<Status(std::string_view line)>& take);

 private:
  std::size_t longest_;
  std::string rest_;
};

/// What the server says has gone wrong (type ERROR) is an Error, and so is what is not understood. kNotFound
/// when the resource version is too old.
Result<WatchEvent> parse_watch_line(std::string_view line, const Selection& selection);

}  // namespace drover::kube

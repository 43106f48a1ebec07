#pragma once

// The frames that a connection carries once it has left HTTP (docs/api.md): a channel, the length of the
// payload in four bytes, the highest first, and the payload. Pure.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace drover {

/// No payload is longer.
inline constexpr std::uint32_t kMostFrame = 1 << 20;

/// What people send to a command or a task.
namespace to_daemon {
inline constexpr char kInput = 0;    ///< empty: its end
inline constexpr char kResize = 1;   ///< {"rows": 24, "columns": 80}
inline constexpr char kSession = 2;  ///< a word by which a writer is known again
}  // namespace to_daemon

/// What they hear.
namespace from_daemon {
inline constexpr char kOutput = 1;
inline constexpr char kErrors = 2;
inline constexpr char kEnd = 3;    ///< the last one
inline constexpr char kTaken = 4;  ///< {"bytes": 0}
}  // namespace from_daemon

struct Frame {
  char channel = 0;
  std::string payload;

  bool operator==(const Frame&) const = default;
};

std::string to_text(const Frame& frame);

/// Finds the frames in what comes piece by piece. Keeps at most one frame and the last piece.
class FrameParser {
 public:
  void append(std::string_view piece);
  /// The next one that is whole; none when it has not come yet, or is_broken().
  std::optional<Frame> next();
  /// A frame was announced that is longer than any.
  bool is_broken() const { return broken_; }

 private:
  std::string text_;
  std::size_t begin_ = 0;  ///< of the next frame in text_
  bool broken_ = false;
};

}  // namespace drover

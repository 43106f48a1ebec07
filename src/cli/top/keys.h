#pragma once

// What is typed and clicked on a terminal, out of the bytes that it sends: letters, keys as xterm and its
// like name them, and the mouse in SGR form. Bytes may come in any pieces; what nobody knows is dropped
// whole. Pure.

#include <string>
#include <string_view>
#include <vector>

namespace drover::cli::top {

struct Key {
  enum class Kind {
    kText,  ///< one letter, in `text`
    kUp,
    kDown,
    kLeft,
    kRight,
    kPageUp,
    kPageDown,
    kHome,
    kEnd,
    kTab,
    kBackTab,
    kEnter,
    kEscape,
    kBackspace,
    kInterrupt,  ///< Ctrl-C
    kSuspend,    ///< Ctrl-Z
    kRedraw,     ///< Ctrl-L
    kPress,      ///< of the left button
    kWheelUp,
    kWheelDown,
  };
  Kind kind = Kind::kText;
  std::string text = {};
  int x = 0, y = 0;  ///< of the mouse: the cell, from 0

  bool operator==(const Key&) const = default;
};

class KeyReader {
 public:
  std::vector<Key> feed(std::string_view bytes);
  /// Whether something has begun that may be a key by itself: Escape, when nothing follows soon.
  bool waits() const { return !pending_.empty(); }
  /// Nothing has followed.
  std::vector<Key> flush();

 private:
  std::size_t take(std::vector<Key>& keys) const;

  std::string pending_;
};

}  // namespace drover::cli::top

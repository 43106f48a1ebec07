#pragma once

// The terminal of `drover top`: keys as they are typed, a screen of its own, the mouse. However the process
// goes on, by an end, an exception or a signal that asks it to end, the terminal is as before; what cannot be
// caught, SIGKILL, leaves that to `reset`. One at a time, on the thread that made it.

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "cli/terminal.h"

namespace drover::cli::top {

class Console {
 public:
  /// Blocks signals in this thread and those that it starts: make it before there are others.
  Console();
  ~Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  struct Size {
    int width = 80, height = 24;

    bool operator==(const Size&) const = default;
  };
  static Size size();

  struct Happened {
    std::string typed = {};
    bool called = false;     ///< by call()
    bool resized = false;    ///< and perhaps back: what the terminal shows is not known any more
    bool suspended = false;  ///< somebody has asked for it with SIGTSTP
    int ended_by = 0;        ///< a signal that asks to end; SIGHUP also when the terminal is gone
  };
  /// Waits until something happens, no longer than `most`.
  Happened wait(std::optional<std::chrono::milliseconds> most);
  /// Ends wait(). For any thread; takes no time.
  void call() const;
  /// Shows it at once; false when the terminal is gone.
  bool show(std::string_view changes);
  /// The terminal is as before, the process stops, and when it goes on the terminal is ours again.
  void suspend();

 private:
  void enter();
  void leave();

  UniqueFd signals_, calls_;
  std::optional<RawTerminal> raw_;
};

/// Whether people use a terminal that is one: both ways, and not "dumb".
bool is_at_terminal();
/// Whether the locale says that text is UTF-8.
bool locale_is_utf8();

}  // namespace drover::cli::top

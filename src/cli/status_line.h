#pragma once

// What there is to say until a task runs: on a terminal one line of standard error that is written over and
// over, and wiped before anything else is written. Elsewhere nothing. For one thread at a time.

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace drover::cli {

/// What a record says of a task that does not run yet: "waiting at place 2: …", "pulling x: 40 of 130 MiB";
/// "" when it runs or has ended. `place` 0: not known. Pure.
std::string progress_words(const nlohmann::json& record, int place);

class StatusLine {
 public:
  /// `descriptor`: of standard error, or of what a test has in its place.
  explicit StatusLine(int descriptor);
  ~StatusLine() { clear(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  bool on_terminal() const { return terminal_; }
  /// In place of what stands there; "" for nothing. Cut where the terminal ends.
  void show(const std::string& words);
  void clear() { show(""); }

 private:
  int descriptor_;
  bool terminal_;
  bool colours_;
  std::string shown_;
};

}  // namespace drover::cli

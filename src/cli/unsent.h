#pragma once

// What was read for a task and was not taken by it yet, over all connections. Pure.

#include <cstdint>
#include <string>
#include <string_view>

namespace drover::cli {

class Unsent {
 public:
  /// Beyond so much nothing is to be read before some was taken: it fits into a connection that nobody reads.
  static constexpr std::size_t kMost = 64 << 10;

  bool has_room() const { return text_.size() < kMost; }
  void append(std::string_view bytes) { text_ += bytes; }
  /// What the task has not taken.
  std::string_view rest() const { return text_; }
  /// It has taken so many bytes in all. False when it has not seen what it took before: it was started anew.
  bool take(std::uint64_t taken);

 private:
  std::string text_;
  std::uint64_t begin_ = 0;  ///< of text_ in all that was read
};

/// Finds the keys by which people leave a terminal, Ctrl-P and then Ctrl-Q, in what they type. Pure.
class LeaveKeys {
 public:
  /// What is to be passed on of `typed`; after the keys nothing more.
  std::string pass(std::string_view typed);
  bool pressed() const { return pressed_; }

 private:
  bool first_ = false;
  bool pressed_ = false;
};

}  // namespace drover::cli

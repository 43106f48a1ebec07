#pragma once

// The patterns of LIKE and UNLIKE. Only what takes no longer than its length times that of the text is read
// of regular expressions: whole words, alternatives with '|', '.' for one character, '.*' and '.+' for
// several, and '\' before a character that means itself. Pure.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace drover::chronos {

class Pattern {
 public:
  /// None when it is longer than 256 characters or has more in it than that.
  static std::optional<Pattern> parse(std::string_view text);
  /// The whole text.
  bool matches(std::string_view text) const;

 private:
  struct Piece {
    enum class Kind { kCharacter, kAny, kSeveral } kind;
    char character = 0;
  };
  std::vector<std::vector<Piece>> alternatives_;
};

}  // namespace drover::chronos

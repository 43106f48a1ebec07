#include "chronos/pattern.h"

namespace drover::chronos {

std::optional<Pattern> Pattern::parse(std::string_view text) {
  constexpr std::size_t kLongest = 256;
  if (text.size() > kLongest) return std::nullopt;
  if (text.starts_with('^')) text.remove_prefix(1);
  if (text.ends_with('$') && !text.ends_with("\\$")) text.remove_suffix(1);
  Pattern pattern;
  pattern.alternatives_.emplace_back();
  for (std::size_t i = 0; i < text.size(); ++i) {
    auto& pieces = pattern.alternatives_.back();
    const char c = text[i];
    if (c == '|') {
      pattern.alternatives_.emplace_back();
    } else if (c == '\\') {
      // A letter after it would stand for a class of characters.
      if (++i == text.size() || (text[i] >= 'a' && text[i] <= 'z') || (text[i] >= 'A' && text[i] <= 'Z') ||
          (text[i] >= '0' && text[i] <= '9'))
        return std::nullopt;
      pieces.push_back({Piece::Kind::kCharacter, text[i]});
    } else if (c == '.') {
      const char next = i + 1 < text.size() ? text[i + 1] : '\0';
      if (next != '*') pieces.push_back({Piece::Kind::kAny});
      if (next == '*' || next == '+') {
        pieces.push_back({Piece::Kind::kSeveral});
        ++i;
      }
    } else if (std::string_view("*+?()[]{}^$").find(c) != std::string_view::npos) {
      return std::nullopt;
    } else {
      pieces.push_back({Piece::Kind::kCharacter, c});
    }
  }
  return pattern;
}

bool Pattern::matches(std::string_view text) const {
  for (const auto& pieces : alternatives_) {
    std::vector<bool> reached(pieces.size() + 1, false);  // which pieces may be behind us
    const auto skip = [&] {
      for (std::size_t i = 0; i < pieces.size(); ++i)
        if (reached[i] && pieces[i].kind == Piece::Kind::kSeveral) reached[i + 1] = true;
    };
    reached[0] = true;
    skip();
    for (const char c : text) {
      std::vector<bool> next(pieces.size() + 1, false);
      for (std::size_t i = 0; i < pieces.size(); ++i) {
        if (!reached[i]) continue;
        if (pieces[i].kind == Piece::Kind::kSeveral)
          next[i] = true;
        else if (pieces[i].kind == Piece::Kind::kAny || pieces[i].character == c)
          next[i + 1] = true;
      }
      reached = std::move(next);
      skip();
    }
    if (reached.back()) return true;
  }
  return false;
}

}  // namespace drover::chronos

#include "cli/top/screen.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "cli/letters.h"
#include "cli/printable.h"

namespace drover::cli::top {
namespace {

constexpr std::size_t kMostBytes = 16;  // of a letter with its marks
constexpr int kSmallGap = 4;            // to write so many cells again is shorter than to go there
constexpr int kSteps = 8;

/// Eighths of a cell, from the left and from below.
constexpr std::array<const char*, kSteps + 1> kAcross = {" ",      "\u258F", "\u258E", "\u258D", "\u258C",
                                                         "\u258B", "\u258A", "\u2589", "\u2588"};
constexpr std::array<const char*, kSteps + 1> kUp = {" ",      "\u2581", "\u2582", "\u2583", "\u2584",
                                                     "\u2585", "\u2586", "\u2587", "\u2588"};
constexpr std::array<const char*, kSteps + 1> kUpInAscii = {" ", "_", ".", ":", "-", "=", "+", "*", "#"};

std::string sgr(const Style& style, bool colours) {
  std::string codes = "\033[0";
  if (style.bold) codes += ";1";
  if (style.reversed) codes += ";7";
  if (colours && style.colour != Colour::kNone) codes += fmt::format(";{}", code_of(style.colour));
  return codes + "m";
}

/// Tells a terminal of the cells of one line that are not as before.
class LineWriter {
 public:
  LineWriter(const Screen* before, const Screen& after, bool colours)
      : before_(before), after_(after), colours_(colours) {}

  void write(int y) {
    for (int x = 0; x < after_.width();) {
      if (is_as_before(x, y)) {
        ++x;
        continue;
      }
      if (after_.at(x, y).glyph.empty() && x > 0) --x;
      x = write_run(x, y);
    }
  }
  std::string take() && { return text_.empty() ? text_ : text_ + "\033[0m"; }

 private:
  bool is_as_before(int x, int y) const {
    static const Screen::Cell kBlank;
    return after_.at(x, y) == (before_ == nullptr ? kBlank : before_->at(x, y));
  }
  /// From `x` on, as long as something changes soon; terminals differ in how wide they take a wide letter, so
  /// what follows one is told its place again. Returns where it ended.
  int write_run(int x, int y) {
    text_ += fmt::format("\033[{};{}H", y + 1, x + 1);
    while (x < after_.width()) {
      if (is_as_before(x, y) && nothing_soon(x, y)) return x;
      const auto& cell = after_.at(x, y);
      if (!styled_ || cell.style != style_) text_ += sgr(cell.style, colours_);
      style_ = cell.style;
      styled_ = true;
      text_ += cell.glyph;
      const bool wide = x + 1 < after_.width() && after_.at(x + 1, y).glyph.empty();
      x += wide ? 2 : 1;
      if (wide) return x;
    }
    return x;
  }
  bool nothing_soon(int x, int y) const {
    for (int i = x; i < std::min(x + kSmallGap, after_.width()); ++i)
      if (!is_as_before(i, y)) return false;
    return true;
  }

  const Screen* before_;
  const Screen& after_;
  const bool colours_;
  std::string text_;
  Style style_;
  bool styled_ = false;
};

}  // namespace

Screen::Screen(int width, int height, bool unicode)
    : width_(std::max(width, 1)),
      height_(std::max(height, 1)),
      unicode_(unicode),
      cells_(static_cast<std::size_t>(width_) * static_cast<std::size_t>(height_)) {}

std::size_t Screen::index(int x, int y) const {
  return static_cast<std::size_t>(y) * static_cast<std::size_t>(width_) + static_cast<std::size_t>(x);
}

/// No half of a wide letter is left beside it.
void Screen::set(int x, int y, std::string glyph, int columns, Style style) {
  if (x > 0 && at(x, y).glyph.empty()) cells_[index(x - 1, y)].glyph = " ";
  if (const int behind = x + columns; behind < width_ && at(behind, y).glyph.empty())
    cells_[index(behind, y)].glyph = " ";
  cells_[index(x, y)] = {std::move(glyph), style};
  if (columns == 2) cells_[index(x + 1, y)] = {"", style};
}

int Screen::put(int x, int y, std::string_view text, Style style, int room) {
  const auto clean = printable(text);
  const int end = std::min(width_, x + room);
  const bool cut = x + static_cast<int>(display_width(clean)) > end;
  if (!holds(x, y) || end <= x) return x;
  int last = x;
  for (Letters letters(clean); !letters.done();) {
    const auto letter = letters.next();
    if (letter.columns == 0) {
      auto& glyph = cells_[index(last, y)].glyph;
      if (unicode_ && last < x && glyph.size() + letter.bytes.size() <= kMostBytes) glyph += letter.bytes;
      continue;
    }
    const int columns = unicode_ ? static_cast<int>(letter.columns) : 1;
    if (x + columns > (cut ? end - 1 : end)) break;
    const bool shown = letter.good && (unicode_ || letter.bytes.size() == 1);
    set(x, y, shown ? std::string(letter.bytes) : "?", columns, style);
    last = x;
    x += columns;
  }
  if (!cut || x >= end) return x;
  set(x, y, unicode_ ? "\u2026" : "~", 1, style);
  return x + 1;
}

void Screen::put_right(int x, int y, std::string_view text, Style style, int room) {
  const int columns = static_cast<int>(display_width(printable(text)));
  const int indent = std::max(room - columns, 0);
  put(x + indent, y, text, style, room - indent);
}

void Screen::bar(int x, int y, int room, double percent, Style style) {
  const int eighths = static_cast<int>(std::lround(std::clamp(percent, 0.0, 100.0) / 100 * room * kSteps));
  for (int i = 0; i < room && holds(x + i, y); ++i) {
    const auto part = static_cast<std::size_t>(std::clamp(eighths - i * kSteps, 0, kSteps));
    set(x + i, y, unicode_ ? kAcross.at(part) : (part > kSteps / 2 ? "|" : " "), 1, style);
  }
}

void Screen::graph(int x, int y, int room, const std::vector<int>& percents, Style style) {
  const auto shown = std::min<std::size_t>(percents.size(), static_cast<std::size_t>(std::max(room, 0)));
  x += room - static_cast<int>(shown);
  for (auto i = percents.size() - shown; i < percents.size() && holds(x, y); ++i, ++x) {
    const int percent = std::min(percents[i], 100);
    // What is known and small is seen too: the lowest step is not nothing.
    const auto step = percent < 0 ? 0U : 1U + static_cast<unsigned>(percent * (kSteps - 1) / 100);
    set(x, y, unicode_ ? kUp.at(step) : kUpInAscii.at(step), 1, style);
  }
}

void Screen::mark(int x, int y, int room) {
  for (int i = x; i < x + room && holds(i, y); ++i) cells_[index(i, y)].style.reversed = true;
}

std::string Screen::plain() const {
  std::string text;
  for (int y = 0; y < height_; ++y) {
    std::string line;
    for (int x = 0; x < width_; ++x) line += at(x, y).glyph;
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

std::string changes(const Screen* before, const Screen& after, bool colours) {
  if (before != nullptr && (before->width() != after.width() || before->height() != after.height()))
    before = nullptr;
  LineWriter writer(before, after, colours);
  for (int y = 0; y < after.height(); ++y) writer.write(y);
  return (before == nullptr ? "\033[0m\033[2J" : "") + std::move(writer).take();
}

}  // namespace drover::cli::top

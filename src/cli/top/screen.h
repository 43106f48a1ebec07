#pragma once

// What a terminal shows, as values: a buffer of cells, and what a terminal has to be told so that it shows
// another one. Only what changed is told, so nothing flickers and a slow line is enough. Whatever text is put
// there is made printable() first, so nobody's name is obeyed. Pure.

#include <string>
#include <string_view>
#include <vector>

#include "cli/table.h"

namespace drover::cli::top {

struct Style {
  Colour colour = Colour::kNone;
  bool bold = false;
  bool reversed = false;

  bool operator==(const Style&) const = default;
};

class Screen {
 public:
  struct Cell {
    std::string glyph = " ";  ///< one letter with its marks; "" for the right half of the one before
    Style style = {};

    bool operator==(const Cell&) const = default;
  };

  /// In cells, at least one each way. Without `unicode` all is ASCII: other letters become '?'.
  Screen(int width, int height, bool unicode);

  int width() const { return width_; }
  int height() const { return height_; }

  /// Writes from column `x` of line `y` on into at most `room` cells; what is longer is cut, and says so.
  /// What is outside is left out. Returns the column behind it.
  int put(int x, int y, std::string_view text, Style style = {}, int room = 1 << 20);
  /// The same so that it ends before column `x + room`.
  void put_right(int x, int y, std::string_view text, Style style, int room);
  /// A bar of `room` cells when it is full, at 100.
  void bar(int x, int y, int room, double percent, Style style);
  /// A column a value from 0 to 100, the last one at the right edge; a value below 0 is not known.
  void graph(int x, int y, int room, const std::vector<int>& percents, Style style);
  /// All cells of the line, from `x` on, in reverse.
  void mark(int x, int y, int room);

  const Cell& at(int x, int y) const { return cells_[index(x, y)]; }
  /// As lines of text, without blanks at their ends, and without styles.
  std::string plain() const;

 private:
  std::size_t index(int x, int y) const;
  bool holds(int x, int y) const { return x >= 0 && y >= 0 && x < width_ && y < height_; }
  void set(int x, int y, std::string glyph, int columns, Style style);

  int width_, height_;
  bool unicode_;
  std::vector<Cell> cells_;
};

/// What makes a terminal that shows `before` show `after`; "" when it does already. Without `before`, or when
/// it had another size, whatever the terminal shows. Lines are not wrapped at the terminal's edge.
std::string changes(const Screen* before, const Screen& after, bool colours);

}  // namespace drover::cli::top

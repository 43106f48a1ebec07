#pragma once

// Columns of text for people. Pure.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace drover::cli {

enum class Colour { kNone, kGreen, kYellow, kRed, kDim };

/// What a terminal is told for it, between "\033[" and "m"; "" for kNone.
std::string_view code_of(Colour colour);
/// `text` in that colour, for a terminal.
std::string coloured(std::string text, Colour colour);

/// Columns that the text takes on a terminal: letters of East Asia, and pictures, take two, marks above
/// others none.
std::size_t display_width(std::string_view text);
/// Not wider than `width`: what is longer ends with "…".
std::string cut_to_width(std::string_view text, std::size_t width);

struct Cell {
  Cell(std::string words, Colour shade = Colour::kNone) : text(std::move(words)), colour(shade) {}
  Cell(const char* words) : text(words) {}

  std::string text;
  Colour colour = Colour::kNone;
};

/// How a table is shown.
struct TableStyle {
  std::size_t width = 0;  ///< columns of the terminal; 0: as wide as it gets
  bool colours = false;
  bool header = true;
};

class Table {
 public:
  explicit Table(std::vector<std::string> header);

  /// Has as many cells as the header. They are made printable(): a name cannot play tricks on a terminal.
  void add(std::vector<Cell> row);
  /// Of the columns, as they are written in formats: "used-by" of "USED BY".
  std::vector<std::string> names() const;
  /// These columns, in that order. kInvalid tells which there are.
  Result<Table> with(const std::vector<std::string>& names) const;
  /// What each row says, without the header.
  std::vector<std::vector<std::string>> texts() const;
  /// Two spaces between columns, none at the end of a line. Columns of numbers are aligned to the right.
  /// Where the terminal is too narrow, the widest columns of text are cut, the first one never.
  std::string render(const TableStyle& style = {}) const;

 private:
  std::vector<std::size_t> widths(const std::vector<bool>& numbers, const TableStyle& style) const;

  std::vector<std::vector<Cell>> rows_;
};

}  // namespace drover::cli

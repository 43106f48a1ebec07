#include "cli/table.h"

#include <algorithm>

#include "cli/printable.h"

namespace drover::cli {
namespace {

/// Columns on a terminal, as far as one per character is true.
std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789.") == std::string_view::npos;
}

}  // namespace

Table::Table(std::vector<std::string> header) {
  rows_.push_back(std::move(header));
}

void Table::add(std::vector<std::string> row) {
  for (auto& cell : row) cell = printable(cell);
  rows_.push_back(std::move(row));
}

std::string Table::render() const {
  const auto columns = rows_.front().size();
  std::vector<std::size_t> widths(columns, 0);
  std::vector<bool> right(columns, rows_.size() > 1);
  for (std::size_t r = 0; r < rows_.size(); ++r)
    for (std::size_t c = 0; c < columns; ++c) {
      widths[c] = std::max(widths[c], width(rows_[r][c]));
      if (r > 0 && !is_number(rows_[r][c])) right[c] = false;
    }
  std::string text;
  for (const auto& row : rows_) {
    const auto line = text.size();
    for (std::size_t c = 0; c < columns; ++c) {
      const auto padding = widths[c] - width(row[c]);
      if (c > 0) text += "  ";
      if (right[c]) text.append(padding, ' ');
      text += row[c];
      if (!right[c]) text.append(padding, ' ');
    }
    text.erase(std::max(line, text.find_last_not_of(' ') + 1));
    text += '\n';
  }
  return text;
}

}  // namespace drover::cli

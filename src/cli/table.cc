#include "cli/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <numeric>

#include "cli/letters.h"
#include "cli/printable.h"

namespace drover::cli {
namespace {

constexpr std::size_t kBetween = 2;
/// No column is cut to less.
constexpr std::size_t kNarrowest = 8;
constexpr std::string_view kCut = "\u2026";

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789.") == std::string_view::npos;
}

}  // namespace

std::string_view code_of(Colour colour) {
  constexpr std::array<std::string_view, 5> kCodes = {"", "32", "33", "31", "2"};
  return kCodes.at(static_cast<std::size_t>(colour));
}

std::string coloured(std::string text, Colour colour) {
  if (colour == Colour::kNone || text.empty()) return text;
  return fmt::format("\033[{}m{}\033[0m", code_of(colour), text);
}

std::size_t display_width(std::string_view text) {
  std::size_t columns = 0;
  for (Letters letters(text); !letters.done();) columns += letters.next().columns;
  return columns;
}

std::string cut_to_width(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) return std::string(text);
  std::string kept;
  std::size_t columns = 1;  // of the mark
  for (Letters letters(text); !letters.done();) {
    const auto letter = letters.next();
    columns += letter.columns;
    if (columns > width) break;
    kept += letter.bytes;
  }
  return kept += kCut;
}

Table::Table(std::vector<std::string> header) {
  auto& row = rows_.emplace_back();
  for (auto& name : header) row.emplace_back(std::move(name));
}

void Table::add(std::vector<Cell> row) {
  for (auto& cell : row) cell.text = printable(cell.text);
  rows_.push_back(std::move(row));
}

std::vector<std::string> Table::names() const {
  std::vector<std::string> names;
  for (const auto& cell : rows_.front()) {
    auto name = cell.text.substr(0, cell.text.find(" ("));
    std::ranges::transform(name, name.begin(), [](unsigned char c) {
      return c == ' ' ? '-' : static_cast<char>(std::tolower(c));
    });
    names.push_back(std::move(name));
  }
  return names;
}

Result<Table> Table::with(const std::vector<std::string>& names) const {
  const auto known = this->names();
  std::vector<std::size_t> columns;
  for (const auto& name : names) {
    const auto found = std::ranges::find(known, name);
    if (found == known.end())
      return fail(ErrorKind::kInvalid, fmt::format("--format: there is no column '{}'", name),
                  fmt::format("there are {}", fmt::join(known, ", ")));
    columns.push_back(static_cast<std::size_t>(found - known.begin()));
  }
  Table chosen({});
  chosen.rows_.clear();
  for (const auto& row : rows_) {
    auto& cells = chosen.rows_.emplace_back();
    for (const auto column : columns) cells.push_back(row[column]);
  }
  return chosen;
}

std::vector<std::vector<std::string>> Table::texts() const {
  std::vector<std::vector<std::string>> texts;
  for (std::size_t r = 1; r < rows_.size(); ++r) {
    auto& row = texts.emplace_back();
    for (const auto& cell : rows_[r]) row.push_back(cell.text);
  }
  return texts;
}

std::vector<std::size_t> Table::widths(const std::vector<bool>& numbers, const TableStyle& style) const {
  std::vector<std::size_t> widths(numbers.size(), 0);
  for (std::size_t r = style.header ? 0 : 1; r < rows_.size(); ++r)
    for (std::size_t c = 0; c < widths.size(); ++c)
      widths[c] = std::max(widths[c], display_width(rows_[r][c].text));
  if (style.width == 0) return widths;
  auto total = std::accumulate(widths.begin(), widths.end(), kBetween * (widths.size() - 1));
  while (total > style.width) {
    std::size_t widest = 0;
    for (std::size_t c = 1; c < widths.size(); ++c)
      if (!numbers[c] && widths[c] > kNarrowest && (widest == 0 || widths[c] > widths[widest])) widest = c;
    if (widest == 0) break;
    --widths[widest];
    --total;
  }
  return widths;
}

std::string Table::render(const TableStyle& style) const {
  std::vector<bool> numbers(rows_.front().size(), rows_.size() > 1);
  for (std::size_t r = 1; r < rows_.size(); ++r)
    for (std::size_t c = 0; c < numbers.size(); ++c)
      if (!is_number(rows_[r][c].text)) numbers[c] = false;
  const auto columns = widths(numbers, style);
  std::string text;
  for (std::size_t r = style.header ? 0 : 1; r < rows_.size(); ++r) {
    std::string spaces;  // none at the end of a line
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const auto& cell = rows_[r][c];
      const auto shown = cut_to_width(cell.text, columns[c]);
      const std::string padding(columns[c] - display_width(shown), ' ');
      if (c > 0) spaces.append(kBetween, ' ');
      if (numbers[c]) spaces += padding;
      if (!shown.empty()) {
        text += spaces + (style.colours ? coloured(shown, cell.colour) : shown);
        spaces.clear();
      }
      if (!numbers[c]) spaces += padding;
    }
    text += '\n';
  }
  return text;
}

}  // namespace drover::cli

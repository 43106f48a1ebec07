#include "table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/files.h"

namespace drover::bench {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find(separator, begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

Result<Table> Table::read(const std::string& path) {
  DROVER_TRY(const auto text, read_file(path));
  Table table;
  table.path_ = path;
  for (auto& line : split(text, '\n')) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    table.lines_.push_back(split(line, ','));
  }
  while (!table.lines_.empty() && table.lines_.back() == std::vector<std::string>{""})
    table.lines_.pop_back();
  if (table.lines_.size() < 2) return fail(ErrorKind::kInvalid, "the file has no rows", "", path);
  for (std::size_t i = 1; i < table.lines_.size(); ++i)
    if (table.lines_[i].size() != table.lines_[0].size())
      return fail(ErrorKind::kInvalid,
                  fmt::format("line {} has {} fields, and the first line names {}", i + 1,
                              table.lines_[i].size(), table.lines_[0].size()),
                  "", path);
  return table;
}

bool Table::has(const std::string& column) const {
  return std::ranges::count(lines_[0], column) > 0;
}

Result<std::string> Table::text(std::size_t row, const std::string& column) const {
  const auto found = std::ranges::find(lines_[0], column);
  if (found == lines_[0].end())
    return fail(ErrorKind::kInvalid, fmt::format("there is no column '{}'", column), "", path_);
  return lines_[row + 1][static_cast<std::size_t>(found - lines_[0].begin())];
}

Result<std::int64_t> Table::number(std::size_t row, const std::string& column, std::int64_t most) const {
  DROVER_TRY(const auto field, text(row, column));
  std::int64_t value = 0;
  const auto* end = field.data() + field.size();
  const auto parsed = std::from_chars(field.data(), end, value);
  if (parsed.ec != std::errc{} || parsed.ptr != end || value < 0 || value > most)
    return wrong(row, column, fmt::format("'{}' is not a whole number from 0 to {}", field, most));
  return value;
}

Failure Table::wrong(std::size_t row, const std::string& column, const std::string& what) const {
  return fail(ErrorKind::kInvalid, fmt::format("line {}, column '{}': {}", row + 2, column, what), "", path_);
}

}  // namespace drover::bench

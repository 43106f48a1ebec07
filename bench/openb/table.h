#pragma once

// A file of comma-separated values, whose first line names the columns. No quoting. A wrong file is refused
// whole, with file, line and column.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace drover::bench {

class Table {
 public:
  static Result<Table> read(const std::string& path);

  std::size_t rows() const { return lines_.size() - 1; }
  bool has(const std::string& column) const;

  Result<std::string> text(std::size_t row, const std::string& column) const;
  /// A whole number from 0 to `most`.
  Result<std::int64_t> number(std::size_t row, const std::string& column, std::int64_t most) const;
  /// What is wrong with a field, as an error that says where.
  Failure wrong(std::size_t row, const std::string& column, const std::string& what) const;

 private:
  std::string path_;
  std::vector<std::vector<std::string>> lines_;
};

/// "a|b" at '|' is "a" and "b"; the empty text is one empty part.
std::vector<std::string> split(std::string_view text, char separator);

}  // namespace drover::bench

#pragma once

// Columns of text for people. Pure.

#include <string>
#include <vector>

namespace drover::cli {

class Table {
 public:
  explicit Table(std::vector<std::string> header);

  /// Has as many cells as the header. They are made printable(): a name cannot play tricks on a terminal.
  void add(std::vector<std::string> row);
  /// Two spaces between columns, none at the end of a line. Columns of numbers are aligned to the right.
  std::string render() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace drover::cli

#pragma once

// Columns of text for people. Pure.

#include <string>
#include <string_view>
#include <vector>

namespace drover::cli {

class Table {
 public:
  explicit Table(std::vector<std::string> header);

  /// Has as many cells as the header. Control characters become '?': a name cannot play tricks on a terminal.
  void add(std::vector<std::string> row);
  /// Two spaces between columns, none at the end of a line. Columns of numbers are aligned to the right.
  std::string render() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

/// `text` without control characters.
std::string printable(std::string_view text);

}  // namespace drover::cli

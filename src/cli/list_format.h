#pragma once

// In which form somebody wants a list: some of its columns, or a line of his own for each row. Pure.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/table.h"

namespace drover::cli {

class ListFormat {
 public:
  /// "id,state": these columns. "{id} is {state}": a line of text; docker's spelling is understood as well,
  /// "{{.ID}}\t{{.State}}", with "table " in front as columns. \t and \n are what they are in C.
  static Result<ListFormat> parse(std::string_view text);

  /// That are named, in their order, in small letters; a name may stand there twice.
  const std::vector<std::string>& names() const { return names_; }
  /// Else it is columns.
  bool is_text() const { return !between_.empty(); }
  /// With the values of names(), and a line's end; of is_text() only.
  std::string line(const std::vector<std::string>& values) const;

 private:
  std::vector<std::string> names_;
  std::vector<std::string> between_;  ///< what stands before each name, and behind the last
};

}  // namespace drover::cli

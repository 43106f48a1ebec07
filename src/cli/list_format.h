#pragma once

// In which form somebody wants a list: some of its columns, or a line of his own for each row. Pure.

#include <nlohmann/json_fwd.hpp>
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
  /// With the values of names(), and a line's end; columns are apart by tabs.
  std::string line(const std::vector<std::string>& values) const;
  /// The same with the fields of an object of those names, "task.name" within others: text as it is, else
  /// JSON; "" for what is not there.
  std::string line_of(const nlohmann::json& object) const;

 private:
  std::vector<std::string> names_;
  std::vector<std::string> between_;  ///< what stands before each name, and behind the last
};

}  // namespace drover::cli

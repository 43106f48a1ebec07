#pragma once

// Lines of a table as other programs read them (RFC 4180, with "\n" at the end of a line). Pure.

#include <string>
#include <string_view>
#include <vector>

namespace drover::cli {

/// One cell, in quotes where it needs them. What a spreadsheet would take for a formula has a ' in front:
/// names are other people's.
std::string csv_cell(std::string_view text);
std::string csv_line(const std::vector<std::string>& cells);

}  // namespace drover::cli

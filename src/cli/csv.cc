#include "cli/csv.h"

namespace drover::cli {

std::string csv_cell(std::string_view text) {
  constexpr std::string_view kBeginFormula = "=+-@\t\r\n";
  const bool is_formula = !text.empty() && kBeginFormula.find(text.front()) != text.npos;
  const auto shown = (is_formula ? "'" : "") + std::string(text);
  if (shown.find_first_of(",;\"'\t\r\n ") == shown.npos) return shown;
  std::string quoted = "\"";
  for (const char c : shown) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::string csv_line(const std::vector<std::string>& cells) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) line += (i == 0 ? "" : ",") + csv_cell(cells[i]);
  return line + "\n";
}

}  // namespace drover::cli

#include "rows.h"

#include <fmt/format.h>

#include <algorithm>

namespace drover::bench {
namespace {

std::string size_text(std::size_t bytes) {
  return bytes == 0 ? "" : fmt::format("{:.0f} KiB", static_cast<double>(bytes) / 1024);
}

std::string ratio_text(const Row& row) {
  if (row.floor.empty()) return "";
  return fmt::format("{:.1f} ×", percentile(row.wall, 0.5) / percentile(row.floor, 0.5));
}

}  // namespace

double percentile(std::vector<double> values, double part) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(part * static_cast<double>(values.size() - 1))];
}

nlohmann::json to_json(const Row& row) {
  nlohmann::json value = {{"what", row.what},
                          {"items", row.items},
                          {"bytes", row.bytes},
                          {"rounds", row.wall.size()},
                          {"wall_median_ms", percentile(row.wall, 0.5)},
                          {"wall_p99_ms", percentile(row.wall, 0.99)},
                          {"cpu_median_ms", percentile(row.cpu, 0.5)},
                          {"cpu_p99_ms", percentile(row.cpu, 0.99)}};
  if (!row.floor.empty()) value["floor_median_ms"] = percentile(row.floor, 0.5);
  return value;
}

void print_table(const std::vector<Row>& rows) {
  fmt::print("| what | items | answer | ms: median | p99 | daemon's CPU ms: median | p99 | ÷ bare bytes |\n");
  fmt::print("| --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (const auto& row : rows)
    fmt::print("| {} | {} | {} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {} |\n", row.what, row.items,
               size_text(row.bytes), percentile(row.wall, 0.5), percentile(row.wall, 0.99),
               percentile(row.cpu, 0.5), percentile(row.cpu, 0.99), ratio_text(row));
}

}  // namespace drover::bench

#pragma once

// What was measured, as rows of a table. Times are milliseconds.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace drover::bench {

struct Row {
  std::string what;
  int items = 0;          ///< apps, instances, jobs … that were in the answer
  std::size_t bytes = 0;  ///< of the answer
  std::vector<double> wall;
  std::vector<double> cpu;    ///< of the daemon's thread
  std::vector<double> floor;  ///< for the same bytes, ready, over a bare connection; empty when not measured
};

nlohmann::json to_json(const Row& row);
void print_table(const std::vector<Row>& rows);
double percentile(std::vector<double> values, double part);

}  // namespace drover::bench

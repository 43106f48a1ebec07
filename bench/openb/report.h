#pragma once

// What a run measured, as tables for people and as JSON.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace drover::bench {

struct Summary {
  double mean = 0;
  double deviation = 0;
};
Summary summarize(const std::vector<double>& values);

/// One policy on one list, over all seeds; percent of all GPUs.
struct Row {
  std::string list;
  int percent = 0;  ///< of arrival
  std::string policy;
  Summary allocation;
  Summary microseconds;
};

struct BoundRow {
  std::string list;
  int percent = 0;
  double plain = 0;
  double without_refusal = 0;
};

struct Report {
  int seeds = 0;
  std::vector<Row> rows;
  std::vector<BoundRow> bounds;
  std::string no_bounds;  ///< why there are none; empty when there are
};

nlohmann::json to_json(const Report& report);
void print(const Report& report);

}  // namespace drover::bench

#include "report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "published.h"

namespace drover::bench {
namespace {

const Published* published(const Row& row) {
  for (const auto& known : kPublished)
    if (row.list == known.list && row.percent == known.percent && row.policy == known.policy) return &known;
  return nullptr;
}

const Row* find(const Report& report, const std::string& list, int percent, const std::string& policy) {
  const auto found = std::ranges::find_if(report.rows, [&](const Row& row) {
    return row.list == list && row.percent == percent && row.policy == policy;
  });
  return found == report.rows.end() ? nullptr : &*found;
}

/// How much of the way from FGD to the bound Drover goes.
std::optional<double> gap_closed(const Report& report, const BoundRow& bound, double to) {
  const auto* drover = find(report, bound.list, bound.percent, "Drover");
  const auto* fgd = find(report, bound.list, bound.percent, "FGD");
  if (drover == nullptr || fgd == nullptr || to <= fgd->allocation.mean) return std::nullopt;
  return 100 * (drover->allocation.mean - fgd->allocation.mean) / (to - fgd->allocation.mean);
}

std::string percent_text(const std::optional<double>& value) {
  return value ? fmt::format("{:.0f}%", *value) : "–";
}

}  // namespace

Summary summarize(const std::vector<double>& values) {
  if (values.empty()) return {};
  const auto count = static_cast<double>(values.size());
  const auto mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const auto value : values) squares += (value - mean) * (value - mean);
  return {mean, values.size() > 1 ? std::sqrt(squares / (count - 1)) : 0};
}

nlohmann::json to_json(const Report& report) {
  auto rows = nlohmann::json::array();
  for (const auto& row : report.rows) {
    nlohmann::json entry{{"list", row.list},
                         {"arrival_percent", row.percent},
                         {"policy", row.policy},
                         {"allocation_percent", row.allocation.mean},
                         {"deviation", row.allocation.deviation},
                         {"microseconds_per_pod", row.microseconds.mean}};
    if (const auto* known = published(row); known != nullptr)
      entry["published"] = {{"allocation_percent", known->mean}, {"deviation", known->deviation}};
    rows.push_back(entry);
  }
  auto bounds = nlohmann::json::array();
  for (const auto& bound : report.bounds) {
    nlohmann::json entry{{"list", bound.list},
                         {"arrival_percent", bound.percent},
                         {"bound_percent", bound.plain},
                         {"bound_without_refusal_percent", bound.without_refusal}};
    if (const auto closed = gap_closed(report, bound, bound.plain)) entry["gap_closed_percent"] = *closed;
    if (const auto closed = gap_closed(report, bound, bound.without_refusal))
      entry["gap_closed_without_refusal_percent"] = *closed;
    bounds.push_back(entry);
  }
  return {{"seeds", report.seeds}, {"allocations", rows}, {"bounds", bounds}};
}

void print(const Report& report) {
  fmt::print("Allocated, percent of all GPUs: mean (deviation) over {} seeds.\n\n", report.seeds);
  fmt::print(
      "| list | arrival | policy | allocated | published | µs a pod |\n| --- | --- | --- | --- | --- | --- "
      "|\n");
  for (const auto& row : report.rows) {
    const auto* known = published(row);
    fmt::print("| {} | {} | {} | {:.2f} ({:.2f}) | {} | {:.1f} |\n", row.list, row.percent, row.policy,
               row.allocation.mean, row.allocation.deviation,
               known == nullptr ? "–" : fmt::format("{:.2f} ({:.2f})", known->mean, known->deviation),
               row.microseconds.mean);
  }
  if (!report.no_bounds.empty()) fmt::print("\nNo bounds: {}\n", report.no_bounds);
  if (report.bounds.empty()) return;
  fmt::print(
      "\n| list | arrival | FGD | Drover | bound | gap closed | bound without refusal | gap closed |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (const auto& bound : report.bounds) {
    const auto text = [&](const char* policy) {
      const auto* row = find(report, bound.list, bound.percent, policy);
      return row == nullptr ? "–" : fmt::format("{:.2f}", row->allocation.mean);
    };
    fmt::print("| {} | {} | {} | {} | {:.2f} | {} | {:.2f} | {} |\n", bound.list, bound.percent, text("FGD"),
               text("Drover"), bound.plain, percent_text(gap_closed(report, bound, bound.plain)),
               bound.without_refusal, percent_text(gap_closed(report, bound, bound.without_refusal)));
  }
}

}  // namespace drover::bench

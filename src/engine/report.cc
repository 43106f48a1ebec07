#include "engine/report.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <string_view>

namespace drover::engine {
namespace {

constexpr double kMilli = 1000;

/// What it had of each GPU, in whole ones: "GPU-a=1000 GPU-b=250".
std::map<std::string, double, std::less<>> gpus_of(std::string_view text) {
  std::map<std::string, double, std::less<>> gpus;
  while (!text.empty()) {
    const auto one = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), one.size() + 1));
    const auto sign = one.find('=');
    if (sign == one.npos) continue;
    int milli = 0;
    std::from_chars(one.data() + sign + 1, one.data() + one.size(), milli);
    gpus[std::string(one.substr(0, sign))] += milli / kMilli;  // of two parts of one GPU the sum
  }
  return gpus;
}

double seconds(std::chrono::milliseconds duration) {
  return static_cast<double>(duration.count()) / kMilli;
}

Waits waits_of(std::vector<std::chrono::milliseconds> all) {
  if (all.empty()) return {};
  std::ranges::sort(all);
  const auto count = static_cast<std::int64_t>(all.size());
  const auto sum = std::accumulate(all.begin(), all.end(), std::chrono::milliseconds(0));
  const auto low = all[(all.size() - 1) / 2], high = all[all.size() / 2];
  return {count, sum / count, low + (high - low) / 2, all.back()};
}

}  // namespace

void ReportSums::add_to(Sums& sums, const store::Allocation& allocation, double gpus, double all) const {
  const auto has = [&](TimePoint time) { return time >= query_.since && time < query_.until; };
  auto& row = sums.row;
  const auto whole = seconds(allocation.until - allocation.from);
  const auto part =
      seconds(std::min(allocation.until, query_.until) - std::max(allocation.from, query_.since));
  if (part > 0) {
    row.held += part * gpus;
    if (allocation.used && all > 0)
      row.used = row.used.value_or(0) + seconds(*allocation.used) * (gpus / all) * (part / whole);
  }
  const bool is_over = !allocation.ending.empty() && allocation.ending != "resized";
  const bool ends_later = allocation.until >= query_.until || allocation.ending.empty();
  if (allocation.ending != "resized" && ends_later && allocation.from < query_.until) ++row.running;
  if (is_over && has(allocation.until)) {
    ++row.ended[allocation.ending];
    if (allocation.ending == "failed" || allocation.ending == "lost")
      ++row.failures[allocation.cause.empty() ? "unknown" : allocation.cause];
  }
  if (allocation.started && allocation.waited && has(*allocation.started))
    sums.waits.push_back(*allocation.waited);
}

void ReportSums::add(const store::Allocation& allocation) {
  const auto started = allocation.started.value_or(allocation.from);
  const auto first = std::min(allocation.from, started);
  // What is under way ends when it is looked at, and that may be the end of the time itself.
  if (first >= query_.until || allocation.until < query_.since) return;
  const auto gpus = gpus_of(allocation.gpus);
  double all = 0;
  for (const auto& [uuid, part] : gpus) all += part;
  add_to(total_, allocation, all, all);
  if (query_.by == ReportBy::kGpu)
    for (const auto& [uuid, part] : gpus) add_to(sums_[uuid], allocation, part, all);
  else
    add_to(sums_[query_.by == ReportBy::kUser ? allocation.user : allocation.queue], allocation, all, all);
}

ReportRow ReportSums::row_of(Sums sums, std::string key) {
  sums.row.key = std::move(key);
  sums.row.waits = waits_of(std::move(sums.waits));
  return std::move(sums.row);
}

Report ReportSums::finish() && {
  Report report{.query = query_};
  for (auto& [key, sums] : sums_) report.rows.push_back(row_of(std::move(sums), key));
  report.total = row_of(std::move(total_), "");
  return report;
}

}  // namespace drover::engine

#include "cli/use_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/units.h"

namespace drover::cli {
namespace {

using nlohmann::json;

std::optional<double> figure_in(const json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

std::string bytes_words(double bytes) {
  return format_bytes(static_cast<std::uint64_t>(std::max(bytes, 0.0)));
}

std::string percent_words(double percent) {
  return fmt::format("{:.0f} %", percent);
}

std::string cpus_words(double cpus) {
  return fmt::format("{:.2f}", cpus);
}

std::string rate_words(double rate) {
  return bytes_words(rate) + "/s";
}

/// "mean 3 GiB, at most 8 GiB"
std::string mean_and_most(const json& use, const char* mean, const char* most, std::string (*words)(double)) {
  const auto its_mean = figure_in(use, mean), its_most = figure_in(use, most);
  if (!its_mean || !its_most) return "";
  return fmt::format("mean {}, at most {}", words(*its_mean), words(*its_most));
}

std::string both_of(const json& use, const char* one, const char* other, const char* format) {
  const auto first = figure_in(use, one), second = figure_in(use, other);
  if (!first || !second) return "";
  return fmt::format(fmt::runtime(format), bytes_words(*first), bytes_words(*second));
}

struct StatsColumn {
  const char* head;
  const char* name;
  std::string (*words)(double);
};
constexpr std::array kStatsColumns = {
    StatsColumn{"GPU", "gpu_percent", percent_words},
    StatsColumn{"GPU MEMORY", "gpu_memory_bytes", bytes_words},
    StatsColumn{"CPUS", "cpus", cpus_words},
    StatsColumn{"MEMORY", "memory_bytes", bytes_words},
    StatsColumn{"NET IN", "network_received_rate", rate_words},
    StatsColumn{"NET OUT", "network_sent_rate", rate_words},
    StatsColumn{"DISK READ", "disk_read_rate", rate_words},
    StatsColumn{"DISK WRITTEN", "disk_written_rate", rate_words},
};

}  // namespace

std::vector<std::pair<const char*, std::string>> words_of_use(const json& use) {
  std::vector<std::pair<const char*, std::string>> words;
  const auto add = [&](const char* name, std::string text) {
    if (!text.empty()) words.emplace_back(name, std::move(text));
  };
  auto gpu = mean_and_most(use, "gpu_percent_mean", "gpu_percent_max", percent_words);
  if (const auto used = figure_in(use, "gpu_seconds_used"); used && !gpu.empty())
    gpu += fmt::format(", {:.0f} GPU seconds in all", *used);
  add("GPU use", std::move(gpu));
  add("GPU memory", mean_and_most(use, "gpu_memory_bytes_mean", "gpu_memory_bytes_max", bytes_words));
  if (const auto seconds = figure_in(use, "cpu_seconds")) {
    const auto most = figure_in(use, "cpus_max");
    add("CPU time",
        fmt::format("{:.1f} s{}", *seconds, most ? fmt::format(", at most {:.2f} CPUs", *most) : ""));
  }
  add("memory use", mean_and_most(use, "memory_bytes_mean", "memory_bytes_max", bytes_words));
  add("network", both_of(use, "network_received_bytes", "network_sent_bytes", "{} received, {} sent"));
  add("disk", both_of(use, "disk_read_bytes", "disk_written_bytes", "{} read, {} written"));
  add("advice", use.value("advice", ""));
  return words;
}

std::string advice_of(const json& record) {
  return record.value("use", json::object()).value("advice", "");
}

std::vector<std::string> stats_columns() {
  std::vector<std::string> heads;
  for (const auto& column : kStatsColumns) heads.emplace_back(column.head);
  return heads;
}

std::vector<Cell> columns_of_stats(const json& stats, std::size_t index) {
  std::vector<Cell> cells;
  for (const auto& column : kStatsColumns) {
    const auto found = stats.find(column.name);
    const bool known =
        found != stats.end() && found->is_array() && index < found->size() && (*found)[index].is_number();
    cells.emplace_back(known ? column.words((*found)[index].get<double>()) : "-");
  }
  return cells;
}

std::string line_of(const std::vector<std::string>& cells) {
  std::string line;
  for (const auto& cell : cells) line += fmt::format("{}{:>12}", line.empty() ? "" : "  ", cell);
  return line + "\n";
}

}  // namespace drover::cli

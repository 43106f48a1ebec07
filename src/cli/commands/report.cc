// `drover report`: who had how much of the GPUs, how long work waited, how it ended.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/csv.h"
#include "cli/flags.h"
#include "cli/moments.h"
#include "cli/usage.h"

namespace drover::cli {
namespace {

using nlohmann::json;

constexpr std::array kEndings = {"finished", "failed", "killed", "lost", "preempted"};
constexpr double kSecondsOfHour = 3600;

struct ReportOptions : TableOptions {
  std::string since = "7d", until, by = "user";
  bool csv = false;
};

std::string hours(const json& seconds) {
  return seconds.is_number() ? fmt::format("{:.2f}", seconds.get<double>() / kSecondsOfHour) : "-";
}

std::string wait(const json& row, const char* which) {
  const auto& waits = row.at("waits");
  if (waits.value("tasks", 0) == 0) return "-";
  return format_duration(std::chrono::milliseconds(std::llround(waits.value(which, 0.0) * 1000)));
}

std::vector<Cell> row_of(const std::string& key, const json& row) {
  std::vector<Cell> cells{key, hours(row.at("gpu_seconds_held")),
                          hours(row.value("gpu_seconds_used", json())),
                          std::to_string(row.value("running", 0))};
  for (const auto* ending : kEndings) cells.emplace_back(std::to_string(row.at("ended").value(ending, 0)));
  cells.emplace_back(wait(row, "median_seconds"));
  cells.emplace_back(wait(row, "longest_seconds"));
  return cells;
}

Table table_of(const json& report) {
  auto by = report.value("by", "");
  const auto name = by;
  std::ranges::transform(by, by.begin(), [](unsigned char c) { return std::toupper(c); });
  Table table({by, "GPU-HOURS", "USED", "RUNNING", "FINISHED", "FAILED", "KILLED", "LOST", "PREEMPTED",
               "MEDIAN WAIT", "LONGEST WAIT"});
  for (const auto& row : report.at("rows")) table.add(row_of(row.value(name, ""), row));
  table.add(row_of("total", report.at("total")));
  return table;
}

/// For programs: plain numbers, and no line for the whole, which they would count twice.
std::string csv_of(const json& report, bool with_header) {
  const auto by = report.value("by", "");
  std::vector<std::string> header{by, "gpu_hours_held", "gpu_hours_used", "running"};
  for (const auto* ending : kEndings) header.emplace_back(ending);
  for (const auto* name : {"tasks_started", "mean_wait_s", "median_wait_s", "longest_wait_s", "failures"})
    header.emplace_back(name);
  auto text = with_header ? csv_line(header) : "";
  for (const auto& row : report.at("rows")) {
    const auto number = [](const json& value, double unit) {
      return value.is_number() ? fmt::format("{:.3f}", value.get<double>() / unit) : "";
    };
    const auto& waits = row.at("waits");
    std::vector<std::string> cells{row.value(by, ""), number(row.at("gpu_seconds_held"), kSecondsOfHour),
                                   number(row.value("gpu_seconds_used", json()), kSecondsOfHour),
                                   std::to_string(row.value("running", 0))};
    for (const auto* ending : kEndings) cells.push_back(std::to_string(row.at("ended").value(ending, 0)));
    cells.push_back(std::to_string(waits.value("tasks", 0)));
    for (const auto* name : {"mean_seconds", "median_seconds", "longest_seconds"})
      cells.push_back(number(waits.at(name), 1));
    std::vector<std::string> causes;
    for (const auto& [cause, count] : row.at("failures").items())
      causes.push_back(fmt::format("{} {}", cause, count.get<int>()));
    cells.push_back(fmt::format("{}", fmt::join(causes, "; ")));
    text += csv_line(cells);
  }
  return text;
}

/// "Failures: 3 out of memory, 1 exit"
std::string failures_of(const json& total) {
  std::vector<std::pair<int, std::string>> causes;
  for (const auto& [cause, count] : total.at("failures").items()) {
    auto words = cause;
    std::ranges::replace(words, '_', ' ');
    causes.emplace_back(-count.get<int>(), words);
  }
  if (causes.empty()) return "";
  std::ranges::sort(causes);
  std::vector<std::string> texts;
  for (const auto& [count, words] : causes) texts.push_back(fmt::format("{} {}", -count, words));
  return fmt::format("Failures: {}\n", fmt::join(texts, ", "));
}

Result<int> report_time(Context& context, const ReportOptions& options) {
  if (options.csv && (options.json || !options.format.empty()))
    return fail(ErrorKind::kInvalid, "--csv is a form of its own", "leave --json and --format out");
  const auto now = wall_clock();
  DROVER_TRY(const auto since, of_flag(parse_since(options.since, now), "--since"));
  auto target = fmt::format("/v1/report?by={}&since={}", options.by, format_time(since));
  if (!options.until.empty()) {
    DROVER_TRY(const auto until, of_flag(parse_since(options.until, now), "--until"));
    target += "&until=" + format_time(until);
  }
  DROVER_TRY(const auto report, context.client().get(target));
  if (options.json) {
    print_json(report);
    return 0;
  }
  if (options.csv) {
    print(csv_of(report, !options.no_header));
    return 0;
  }
  DROVER_TRY(const auto text, shown(table_of(report), options));
  const bool as_it_comes = options.format.empty() && !options.no_header;
  const auto title = fmt::format("From {} to {}\n", report.value("since", ""), report.value("until", ""));
  print(as_it_comes ? title + text + failures_of(report.at("total")) : text);
  return 0;
}

}  // namespace

void add_report(CLI::App& app, Context& context) {
  auto options = std::make_shared<ReportOptions>();
  auto* command =
      app.add_subcommand("report", "Show who had how many GPU-hours, and how work waited and ended");
  add_text(*command, "--since", options->since, "TIME", "From then on: 7d (unless it is said), 2026-11-01");
  add_text(*command, "--until", options->until, "TIME", "Until then; else until now");
  command->add_option("--by", options->by, "A line for each user, queue or GPU")
      ->check(one_of({"user", "queue", "gpu"}))
      ->capture_default_str();
  command->add_flag("--csv", options->csv, "Print comma-separated values, for spreadsheets and programs");
  add_list_flags(*command, *options);
  on_call(command, context, options, report_time);
}

}  // namespace drover::cli

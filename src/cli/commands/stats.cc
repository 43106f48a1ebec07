// `drover stats`: what one task uses, or all that run, now and over their lives.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/event_stream.h"
#include "cli/flags.h"
#include "cli/follow.h"
#include "cli/moments.h"
#include "cli/task_rows.h"
#include "cli/use_words.h"

namespace drover::cli {
namespace {

using nlohmann::json;

constexpr std::size_t kNewest = 20;  // lines, when nobody says since when

struct StatsOptions {
  std::string task;
  bool follow = false;
  bool json = false;
  int resolution = 1;
  std::string since;
};

std::string time_of(const json& stats, std::size_t index) {
  const auto seconds = stats.at("time").at(index).get<std::int64_t>();
  return format_time(TimePoint(std::chrono::seconds(seconds)));
}

std::vector<std::string> with_time(const json& stats, std::size_t index) {
  std::vector<std::string> cells = {time_of(stats, index)};
  for (auto& cell : columns_of_stats(stats, index)) cells.push_back(std::move(cell.text));
  return cells;
}

std::vector<std::string> heads() {
  auto heads = stats_columns();
  heads.insert(heads.begin(), "TIME");
  return heads;
}

std::string life_of(const json& use) {
  std::string text;
  for (const auto& [name, words] : words_of_use(use)) text += fmt::format("{:<13}{}\n", name, words);
  return text.empty() ? "" : "\n" + text;
}

Result<std::string> target_of(const StatsOptions& options) {
  auto query = fmt::format("/stats?resolution={}&follow={}", options.resolution, options.follow);
  if (!options.since.empty()) {
    DROVER_TRY(const auto since, of_flag(parse_since(options.since, wall_clock()), "--since"));
    query += "&since=" + percent_encode(format_time(since));
  }
  return task_target(options.task, query);
}

Result<int> show_stats(const Client& client, const StatsOptions& options) {
  DROVER_TRY(const auto target, target_of(options));
  DROVER_TRY(const auto stats, client.get(target));
  if (options.json) {
    print_json(stats);
    return 0;
  }
  const auto count = stats.at("time").size();
  if (count == 0) {
    print("Nobody has looked yet at what it uses\n");
    return 0;
  }
  Table table(heads());
  for (auto i = options.since.empty() ? count - std::min(count, kNewest) : 0; i < count; ++i) {
    const auto cells = with_time(stats, i);
    table.add({cells.begin(), cells.end()});
  }
  print(table.render());
  print(life_of(stats.at("use")));
  return 0;
}

/// Lines as they come, then what the whole life was.
Result<int> follow_stats(const Client& client, const StatsOptions& options) {
  DROVER_TRY(const auto target, target_of(options));
  bool over = false;
  const auto handle = [&](const ServerEvent& event) {
    const auto value = parse_json(event.data, "An event of the daemon");
    if (!value) return true;
    over = event.name == "end";
    if (options.json)
      print(to_text(over ? value->value("use", json::object()) : *value) + "\n");
    else if (over)
      print(life_of(value->value("use", json::object())));
    else
      for (std::size_t i = 0; i < value->at("time").size(); ++i) print(line_of(with_time(*value, i)));
    return !over;
  };
  if (!options.json) print(line_of(heads()));
  DROVER_CHECK_OK(follow_events(client, target, {"the statistics", "the task goes on", kComebackPatience, {}},
                                handle, [&](bool) { return over; }));
  return 0;
}

/// One line a task, as of its last seconds.
Result<int> stats_of_all(const Client& client, const StatsOptions& options) {
  std::vector<json> running;
  const auto keep = [&](const json& record) {
    if (record.value("state", "") == "running") running.push_back(record.at("task"));
  };
  DROVER_CHECK_OK(client.get_items("/v1/tasks?active=true&own=true", "tasks", keep));
  auto columns = stats_columns();
  columns.insert(columns.begin(), {"TASK", "NAME"});
  Table table(columns);
  json all = json::array();
  for (const auto& task : running) {
    const auto id = task.value("id", "");
    auto stats = client.get(task_target(id, "/stats?since=10s"));
    if (!stats && stats.error().kind == ErrorKind::kNotFound) continue;  // it was forgotten meanwhile
    if (!stats) return Failure(stats.error());
    const auto count = stats->at("time").size();
    std::vector<Cell> row = {id, name_of_task(task)};
    for (auto& cell : columns_of_stats(*stats, count == 0 ? 0 : count - 1)) row.push_back(std::move(cell));
    table.add(std::move(row));
    if (options.json) all.push_back(*std::move(stats));
  }
  if (options.json)
    print_json({{"tasks", std::move(all)}});
  else if (running.empty())
    print("No task of yours runs now\n");
  else
    print(table.render());
  return 0;
}

Result<int> stats(Context& context, const StatsOptions& options) {
  const auto client = context.client();
  if (!options.task.empty())
    return options.follow ? follow_stats(client, options) : show_stats(client, options);
  if (options.follow)
    return fail(ErrorKind::kInvalid, "--follow: one task can be followed", "name it: drover stats -f TASK");
  return stats_of_all(client, options);
}

}  // namespace

void add_stats(CLI::App& app, Context& context) {
  auto options = std::make_shared<StatsOptions>();
  auto* command = app.add_subcommand("stats", "Show what a task uses, and used over its life");
  command->add_option("task", options->task, "Id, the beginning of an id, or name; all of yours that run")
      ->type_name("TASK");
  command->add_flag("--follow,-f", options->follow, "Go on until the task has ended");
  command->add_option("--resolution", options->resolution, "Seconds that a line speaks for: 1, 10 or 60")
      ->type_name("SECONDS")
      ->check(CLI::IsMember({1, 10, 60}));
  add_text(*command, "--since", options->since, "TIME", "Begin then: 10m, 18:00, a date");
  command->add_flag("--json", options->json, "Print JSON");
  on_call(command, context, options, stats);
}

}  // namespace drover::cli

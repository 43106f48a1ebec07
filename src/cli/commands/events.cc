#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "base/decode.h"
#include "base/json_text.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/completion.h"
#include "cli/event_stream.h"
#include "cli/flags.h"
#include "cli/follow.h"
#include "cli/list_format.h"
#include "cli/moments.h"
#include "cli/printable.h"
#include "cli/task_rows.h"
#include "cli/usage.h"
#include "workload/event_kinds.h"

namespace drover::cli {
namespace {

using nlohmann::json;

constexpr std::int64_t kNewestUnasked = 1000;

struct EventsOptions {
  bool follow = false;
  bool json = false;
  std::int64_t newest = 0;
  std::string since, until, task, user, format;
  std::vector<std::string> kinds;
};

/// "ann, 2 GPUs, exit status 3, ran 2h": how a task ended, for who asks when all else of it is gone.
std::string ending_of(const json& event) {
  if (!event.contains("finished_at")) return "";
  std::vector<std::string> words{event.value("user", "")};
  if (const auto gpus = event.value("gpus", json::array()).size(); gpus > 0)
    words.push_back(fmt::format("{} {}", gpus, gpus == 1 ? "GPU" : "GPUs"));
  if (const auto status = event.value("exit_status", 0); status != 0)
    words.push_back(fmt::format("exit status {}", status));
  if (const auto time = run_time(event, TimePoint()); time != "-") words.push_back("ran " + time);
  return fmt::format(" ({})", fmt::join(words, ", "));
}

void print_event(const json& event, bool as_json, const std::optional<ListFormat>& format) {
  if (as_json) {
    print(printable_json(to_text(event)) + "\n");
    return;
  }
  if (format) return print(format->line_of(event));
  const auto task = event.value("task", json());
  print(printable(fmt::format("{}  {:<16}  {:<14}  {}{}", event.value("at", ""), event.value("kind", ""),
                              task.is_string() ? task.get<std::string>() : "-", event.value("message", ""),
                              ending_of(event))) +
        "\n");
}

/// The id of the task that is meant, when only a record of it says so: it may be the beginning of an id, or
/// the id by which an app shows it. The daemon finds the rest by what the events themselves say.
std::string meant_task(const Client& client, const std::string& word) {
  const auto record = client.get(task_target(word));
  if (!record) return word;
  const auto& task = record->at("task");
  const auto id = task.value("id", "");
  const auto shown = task.value("origin", json::object()).value("task_id", "");
  return task.value("name", "") != word && (id.starts_with(word) || shown == word) ? id : word;
}

Result<std::string> query_of(const Client& client, const EventsOptions& options) {
  std::string query;
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) query += fmt::format("&{}={}", name, percent_encode(value));
  };
  for (const auto& kind : options.kinds) {
    DROVER_CHECK_OK(of_flag(workload::check_event_kind(kind), "--kind"));
    add("kind", kind);
  }
  for (const auto& [name, text] : {std::pair("since", &options.since), std::pair("until", &options.until)}) {
    if (text->empty()) continue;
    DROVER_TRY(const auto time, of_flag(parse_since(*text, wall_clock()), fmt::format("--{}", name)));
    add(name, format_time(time));
  }
  if (!options.task.empty()) add("task", meant_task(client, options.task));
  add("user", options.user);
  const bool asks = !options.since.empty() || !options.until.empty() || !options.task.empty();
  if (const auto newest = options.newest > 0 || asks ? options.newest : kNewestUnasked; newest > 0)
    add("limit", std::to_string(newest));
  return query;
}

Result<int> events(Context& context, const EventsOptions& options) {
  const auto client = context.client();
  const bool as_json = options.json || options.format == "json";
  std::optional<ListFormat> format;
  if (!options.format.empty() && !as_json) {
    DROVER_TRY(format, ListFormat::parse(options.format));
  }
  DROVER_TRY(const auto query, query_of(client, options));
  const auto target = fmt::format("/v1/events?follow={}{}", options.follow, query);
  if (!options.follow) {
    const auto show = [&](const json& event) { print_event(event, as_json, format); };
    DROVER_CHECK_OK(client.get_items(target, "events", show));
    return 0;
  }
  const auto handle = [&](const ServerEvent& event) {
    if (const auto value = parse_json(event.data, "An event of the daemon"))
      print_event(*value, as_json, format);
    return true;
  };
  DROVER_CHECK_OK(follow_events(client, target, {"the events", "what happens is kept", kComebackPatience, {}},
                                handle, [&](bool well) { return well && !options.until.empty(); }));
  return 0;
}

}  // namespace

void add_events(CLI::App& app, Context& context) {
  auto options = std::make_shared<EventsOptions>();
  auto* command = app.add_subcommand("events", "Print what happened to your tasks and to the GPUs");
  command->add_flag("--follow,-f", options->follow, "Go on until Ctrl-C");
  add_text(*command, "--since", options->since, "TIME", "Only what happened since: 2h, 18:00, a date");
  add_text(*command, "--until", options->until, "TIME", "Only what happened until then");
  add_text(*command, "--task", options->task, "TASK",
           "Only of this task, or of all of this name, or of a gang, an array, an app or a job");
  add_list(*command, "--kind", options->kinds, kEventType, "Only of this kind; may be repeated");
  add_text(*command, "--user", options->user, "USER", "Only of tasks of this user");
  command
      ->add_option("--limit,-n", options->newest,
                   "Only the N newest; 1000 when neither a time nor a task is asked for")
      ->type_name("N")
      ->check(between(1, 1'000'000));
  command->add_flag("--json", options->json, "Print one JSON object a line");
  add_text(*command, "--format", options->format, "FORMAT", "Only these fields: '{at} {kind} {message}'");
  on_call(command, context, options, events);
}

}  // namespace drover::cli

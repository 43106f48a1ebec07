#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/decode.h"
#include "base/files.h"
#include "base/json_text.h"
#include "cli/commands/commands.h"
#include "cli/event_stream.h"
#include "cli/follow.h"
#include "cli/printable.h"
#include "cli/usage.h"

namespace drover::cli {
namespace {

using nlohmann::json;

struct LogsOptions {
  std::string task;
  bool follow = false;
  bool only_stdout = false;
  bool only_stderr = false;
  std::int64_t tail = -1;
};
struct EventsOptions {
  bool follow = false;
  bool json = false;
};

/// Writes a task's output to ours; false when nobody reads it any more.
bool pass_on(std::string_view stream, std::string_view bytes) {
  const int fd = stream == "stderr" ? STDERR_FILENO : STDOUT_FILENO;
  return write_all(fd, bytes, std::string(stream)).has_value();
}

std::string chosen_stream(const LogsOptions& options) {
  if (options.only_stdout == options.only_stderr) return "";
  return options.only_stdout ? "stdout" : "stderr";
}

Result<int> follow_logs(const Client& client, const LogsOptions& options) {
  FollowHandlers handlers;
  handlers.output = pass_on;
  handlers.state = [](const json&) {};
  handlers.give_up = [] { return false; };
  FollowOptions following;
  following.stream = chosen_stream(options);
  following.tail = options.tail;
  DROVER_CHECK_OK(follow_task(client, options.task, following, handlers).map([](const json&) {}));
  return 0;
}

Result<int> logs(Context& context, const LogsOptions& options) {
  const auto client = context.client();
  if (options.follow) return follow_logs(client, options);
  for (const std::string stream : {"stdout", "stderr"}) {
    if (const auto chosen = chosen_stream(options); !chosen.empty() && chosen != stream) continue;
    auto target = task_target(options.task, "/logs?stream=" + stream);
    if (options.tail >= 0) target += fmt::format("&tail={}", options.tail);
    DROVER_CHECK_OK(
        client.stream(target, "", [&](std::string_view piece) { return pass_on(stream, piece); }));
  }
  return 0;
}

void print_event(const json& event, bool as_json) {
  if (as_json) {
    print(printable_json(to_text(event)) + "\n");
    return;
  }
  const auto task = event.value("task", json());
  print(printable(fmt::format("{}  {:<16}  {:<14}  {}", event.value("at", ""), event.value("kind", ""),
                              task.is_string() ? task.get<std::string>() : "-", event.value("message", ""))) +
        "\n");
}

Result<int> events(Context& context, const EventsOptions& options) {
  const auto client = context.client();
  if (!options.follow) {
    DROVER_TRY(const auto listing, client.get("/v1/events?follow=false"));
    for (const auto& event : listing.value("events", json::array())) print_event(event, options.json);
    return 0;
  }
  EventStreamParser parser;
  const auto handle = [&](const ServerEvent& event) {
    if (const auto value = parse_json(event.data, "An event of the daemon"))
      print_event(*value, options.json);
    return true;
  };
  DROVER_CHECK_OK(
      client.stream("/v1/events", "", [&](std::string_view piece) { return parser.feed(piece, handle); }));
  return 0;
}

}  // namespace

void add_logs(CLI::App& app, Context& context) {
  auto log_options = std::make_shared<LogsOptions>();
  auto* logs_command = app.add_subcommand("logs", "Print what a task wrote to stdout and stderr");
  logs_command->add_option("task", log_options->task, "Id, the beginning of an id, or name")
      ->required()
      ->type_name("TASK");
  logs_command->add_flag("--follow,-f", log_options->follow, "Go on until the task has ended");
  logs_command->add_flag("--stdout", log_options->only_stdout, "Only its standard output");
  logs_command->add_flag("--stderr", log_options->only_stderr, "Only its standard error");
  logs_command->add_option("--tail", log_options->tail, "Begin with the last N lines")
      ->type_name("N")
      ->check(between(0, 1'000'000));
  on_call(logs_command, context, log_options, logs);

  auto event_options = std::make_shared<EventsOptions>();
  auto* events_command = app.add_subcommand("events", "Print what happened to your tasks and to the GPUs");
  events_command->add_flag("--follow,-f", event_options->follow, "Go on until Ctrl-C");
  events_command->add_flag("--json", event_options->json, "Print one JSON object a line");
  on_call(events_command, context, event_options, events);
}

}  // namespace drover::cli

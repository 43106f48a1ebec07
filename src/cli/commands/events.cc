#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/decode.h"
#include "base/json_text.h"
#include "cli/commands/commands.h"
#include "cli/event_stream.h"
#include "cli/printable.h"

namespace drover::cli {
namespace {

using nlohmann::json;

struct EventsOptions {
  bool follow = false;
  bool json = false;
};

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

void add_events(CLI::App& app, Context& context) {
  auto options = std::make_shared<EventsOptions>();
  auto* command = app.add_subcommand("events", "Print what happened to your tasks and to the GPUs");
  command->add_flag("--follow,-f", options->follow, "Go on until Ctrl-C");
  command->add_flag("--json", options->json, "Print one JSON object a line");
  on_call(command, context, options, events);
}

}  // namespace drover::cli

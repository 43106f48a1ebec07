#include "cli/follow.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "base/base64.h"
#include "base/decode.h"
#include "cli/context.h"
#include "cli/event_stream.h"

namespace drover::cli {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kRetry{200};

/// What has been heard so far, over all connections.
struct Progress {
  std::string position;   ///< id of the last event
  bool stopped = false;   ///< by a handler
  bool received = false;  ///< anything on this connection
  std::optional<json> end;
  std::optional<Error> error;
};

/// Takes one event; false ends the stream.
bool take(const ServerEvent& event, const FollowHandlers& handlers, Progress& progress) {
  auto value = parse_json(event.data, "An event of the daemon");
  if (!value) {
    progress.error = value.error();
    return false;
  }
  if (event.name == "log") {
    auto bytes = value->value("data", "");
    if (value->value("encoding", "") == "base64") bytes = decode_base64(bytes).value_or("");
    if (!handlers.output(value->value("stream", ""), bytes)) {
      progress.stopped = true;
      return false;
    }
    progress.position = event.id;  // only now: what was not handed on is asked for again
  } else if (event.name == "state") {
    handlers.state(*value);
  } else if (event.name == "end") {
    progress.end = std::move(*value);
    return false;
  }
  return true;
}

Status listen(const Client& client, const std::string& target, const FollowHandlers& handlers,
              Progress& progress) {
  EventStreamParser parser;
  return client.stream(target, progress.position, [&](std::string_view piece) {
    progress.received = true;
    return parser.feed(piece, [&](const ServerEvent& event) { return take(event, handlers, progress); });
  });
}

std::string target_of(const std::string& id, const FollowOptions& options, bool follow) {
  auto target = task_target(id, follow ? "/logs?follow=true" : "/logs?follow=false");
  if (!options.stream.empty() || !follow)
    target += "&stream=" + (options.stream.empty() ? "both" : options.stream);
  if (options.tail >= 0) target += fmt::format("&tail={}", options.tail);
  if (options.since) target += "&since=" + format_time(*options.since);
  if (options.timestamps) target += "&timestamps=true";
  return target;
}

}  // namespace

Result<json> follow_task(const Client& client, const std::string& id, const FollowOptions& options,
                         const FollowHandlers& handlers) {
  const auto target = target_of(id, options, true);
  Progress progress;
  bool told = false;
  auto last_received = Clock::now();
  while (true) {
    const auto status = listen(client, target, handlers, progress);
    if (progress.error) return Failure(*progress.error);
    if (progress.end) return std::move(*progress.end);
    if (progress.stopped) return json();
    if (!status && status.error().kind != ErrorKind::kUnavailable) return Failure(status.error());
    if (std::exchange(progress.received, false)) {
      last_received = Clock::now();
      told = false;
    }
    if (handlers.give_up()) return json();
    if (Clock::now() - last_received > options.patience)
      return Failure(context(
          status ? Error{ErrorKind::kUnavailable, "the daemon ended the answer", "", ""} : status.error(),
          fmt::format("Gave up on task '{}', which may still run", id)));
    if (!std::exchange(told, true) && !options.quiet)
      (handlers.tell ? handlers.tell : report)(fmt::format(
          "the daemon does not answer; the task goes on, trying again for {} s", options.patience.count()));
    std::this_thread::sleep_for(kRetry);
  }
}

Status read_output(const Client& client, const std::string& id, const FollowOptions& options,
                   const OutputHandler& output) {
  const auto target = target_of(id, options, false);
  if (!options.stream.empty())
    return client.stream(target, "", [&](std::string_view piece) { return output(options.stream, piece); });
  FollowHandlers handlers;
  handlers.output = output;
  Progress progress;
  DROVER_CHECK_OK(listen(client, target, handlers, progress));
  if (progress.error) return Failure(*progress.error);
  return {};
}

}  // namespace drover::cli

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
  std::string position;  ///< id of the last event
  bool stopped = false;  ///< by a handler
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
              Progress& progress, Comeback* comeback) {
  EventStreamParser parser;
  return client.stream(target, progress.position, [&](std::string_view piece) {
    if (comeback != nullptr) comeback->received();
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

Comeback::Comeback(std::string what, std::string meanwhile, std::chrono::seconds patience, Tell tell)
    : what_(std::move(what)), meanwhile_(std::move(meanwhile)), patience_(patience), tell_(std::move(tell)) {
  if (!tell_) tell_ = report;
}

Result<bool> Comeback::again(const Status& ended, const std::function<bool()>& give_up) {
  if (!ended && ended.error().kind != ErrorKind::kUnavailable) return Failure(ended.error());
  if (std::exchange(received_, false)) {
    last_received_ = Clock::now();
    told_ = false;
  }
  if (give_up()) return false;
  if (Clock::now() - last_received_ > patience_)
    return Failure(
        context(ended ? Error{ErrorKind::kUnavailable, "the daemon ended the answer", "", ""} : ended.error(),
                fmt::format("Gave up on {}", what_)));
  if (!std::exchange(told_, true))
    tell_(
        fmt::format("the daemon does not answer; {}, trying again for {} s", meanwhile_, patience_.count()));
  std::this_thread::sleep_for(kRetry);
  return true;
}

Status follow_events(const Client& client, const std::string& target, Comeback comeback,
                     const std::function<bool(const ServerEvent&)>& handle,
                     const std::function<bool(bool well)>& is_over) {
  std::string last;
  bool any = false;
  const auto take = [&](const ServerEvent& event) {
    if (!event.id.empty()) last = event.id;
    return handle(event);
  };
  while (true) {
    EventStreamParser parser;
    const auto ended = client.stream(target, last, [&](std::string_view piece) {
      comeback.received();
      any = true;
      return parser.feed(piece, take);
    });
    if (is_over(ended.has_value())) return {};
    if (!ended && !any) return ended;
    DROVER_CHECK_OK(comeback.again(ended, [] { return false; }).map([](bool) {}));
  }
}

Result<json> follow_task(const Client& client, const std::string& id, const FollowOptions& options,
                         const FollowHandlers& handlers) {
  const auto target = target_of(id, options, true);
  Progress progress;
  const auto quiet = [](std::string_view) {};
  Comeback comeback(fmt::format("task '{}', which may still run", id), "the task goes on", options.patience,
                    options.quiet ? quiet : handlers.tell);
  while (true) {
    const auto status = listen(client, target, handlers, progress, &comeback);
    if (progress.error) return Failure(*progress.error);
    if (progress.end) return std::move(*progress.end);
    if (progress.stopped) return json();
    DROVER_TRY(const bool again, comeback.again(status, handlers.give_up));
    if (!again) return json();
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
  DROVER_CHECK_OK(listen(client, target, handlers, progress, nullptr));
  if (progress.error) return Failure(*progress.error);
  return {};
}

}  // namespace drover::cli

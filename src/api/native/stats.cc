// What a task used, in columns: up to now, or live as events. Whoever may see the task sees it.

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/this_coro.hpp>
#include <charconv>
#include <cmath>

#include "api/async.h"
#include "api/native/handlers.h"
#include "api/sse.h"
#include "api/wakeup.h"
#include "api/workers.h"
#include "base/instant.h"
#include "base/json_writer.h"
#include "control/record.h"

namespace drover::api {
namespace {

struct StatsQuery {
  std::size_t resolution = 0;  ///< its number
  std::uint32_t since = 0;
  bool follow = false;
};

std::uint32_t seconds_since_1970(TimePoint time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time.time_since_epoch()).count();
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(seconds, 0, UINT32_MAX));
}

/// A moment, or how long ago.
Result<std::uint32_t> read_stats_since(const std::string& text) {
  if (text.empty()) return 0;
  if (const auto ago = parse_duration(text)) return seconds_since_1970(wall_clock() - *ago);
  if (const auto moment = parse_instant(text)) return seconds_since_1970(*moment);
  return fail(ErrorKind::kInvalid, fmt::format("'{}' is neither a time nor so long ago", text),
              "write for example 10m, or 2026-11-26T10:00:00Z", "?since");
}

Result<StatsQuery> read_stats_query(const Request& request) {
  Query query(request);
  StatsQuery asked;
  const auto seconds = query.integer("resolution", 1, 60, 1);
  const auto since = query.text("since");
  asked.follow = query.boolean("follow", false);
  DROVER_CHECK_OK(query.finish());
  const auto found = std::ranges::find(use::kResolutions, seconds, &use::Resolution::seconds);
  if (found == use::kResolutions.end())
    return fail(ErrorKind::kInvalid, fmt::format("There is no resolution of {} s", seconds),
                "it is 1, 10 or 60", "?resolution");
  asked.resolution = static_cast<std::size_t>(found - use::kResolutions.begin());
  DROVER_TRY(asked.since, read_stats_since(since));
  // Whoever comes again has seen what its last event said.
  const auto& last = request.last_event_id;
  std::uint32_t seen = 0;
  if (std::from_chars(last.data(), last.data() + last.size(), seen).ec == std::errc())
    asked.since = std::max(asked.since, seen + 1);
  return asked;
}

template <typename Values>
void write_column(JsonWriter& writer, const std::string& name, const std::vector<use::Slot>& slots,
                  Values use::Slot::* of, std::size_t column) {
  writer.key(std::string_view(name));
  writer.begin_array();
  for (const auto& slot : slots)
    if (const auto& value = (slot.*of)[column])
      writer.value(std::round(*value * 1000) / 1000);
    else
      writer.null();
  writer.end_array();
}

/// {"resolution", "time": […], "gpu_percent": […], …, "use"}
std::string text_of(const use::History& history, const control::TaskRecord& record, std::size_t resolution) {
  std::string text;
  JsonWriter writer(text);
  writer.begin_object();
  writer.field("task", record.task.id);
  writer.field("resolution", use::kResolutions.at(resolution).seconds);
  writer.key("time");
  writer.begin_array();
  for (const auto& slot : history.slots) writer.value(slot.time);
  writer.end_array();
  for (std::size_t column = 0; column < use::kColumns; ++column) {
    const std::string name(use::kColumnNames[column]);
    write_column(writer, name, history.slots, &use::Slot::mean, column);
    if (column < use::kWithMost) write_column(writer, name + "_max", history.slots, &use::Slot::most, column);
  }
  writer.key("use");
  workload::write(writer, use::use_of(history.totals), record.gpus.empty() ? 0 : record.gpus.front().milli);
  writer.end_object();
  return text;
}

/// Of a task of which nothing was seen yet, nothing.
asio::awaitable<Result<use::History>> read_stats(const Services& services, const engine::Caller& caller,
                                                 const std::string& id, const StatsQuery& asked) {
  DROVER_CO_TRY(const auto read, services.daemon->use_history());
  const auto until = seconds_since_1970(wall_clock());
  auto history = co_await on_pool(services.workers->files, caller.user.uid, [read, id, asked, until] {
    return read(id, asked.resolution, asked.since, until);
  });
  if (!history && history.error().kind == ErrorKind::kNotFound) co_return use::History{};
  co_return history;
}

asio::awaitable<void> follow_stats(Services services, engine::Caller caller, std::string id, StatsQuery asked,
                                   BodyWriter& writer) {
  Wakeup wakeup(co_await asio::this_coro::executor, *services.daemon);
  const std::chrono::milliseconds pause =
      std::chrono::seconds(use::kResolutions.at(asked.resolution).seconds);
  auto last_sent = std::chrono::steady_clock::now();
  auto due = last_sent;
  while (true) {
    const auto record = services.daemon->task(caller, id);
    if (!record) co_return;
    const bool ended = control::is_final(record->state);
    const auto now = std::chrono::steady_clock::now();
    if (ended || now >= due) {
      due = now + pause;
      const auto history = co_await read_stats(services, caller, id, asked);
      // The caller has too many followers: this one has its turn at the next look.
      if (!history && history.error().kind != ErrorKind::kUnavailable)
        throw std::runtime_error(to_string(history.error()));
      if (history && !history->slots.empty()) {
        const auto newest = history->slots.back().time;
        co_await writer.write(
            sse_event("stats", std::to_string(newest), text_of(*history, *record, asked.resolution)));
        asked.since = newest + 1;
        last_sent = now;
      }
    }
    if (ended) co_return co_await writer.write(sse_event("end", "", control::text_of(*record)));
    if (now - last_sent > kSseHeartbeat) {
      co_await writer.write(sse_heartbeat());
      last_sent = now;
    }
    // Every event of everybody wakes it: only the end of this task counts before it is due.
    co_await wakeup.wait(std::clamp<std::chrono::milliseconds>(
        std::chrono::ceil<std::chrono::milliseconds>(due - std::chrono::steady_clock::now()),
        std::chrono::milliseconds(1), kSseHeartbeat));
  }
}

}  // namespace

asio::awaitable<Result<Response>> get_stats(const Services& services, const Request& request) {
  DROVER_CO_TRY(const auto asked, read_stats_query(request));
  const auto& caller = *request.caller;
  DROVER_CO_TRY(const auto record, services.daemon->task(caller, request.parameters.at("id")));
  const auto& id = record.task.id;
  Response response;
  if (asked.follow) {
    DROVER_CO_TRY(const auto read, services.daemon->use_history());
    (void)read;
    response.content_type = "text/event-stream";
    response.stream = [services, caller, id, asked](BodyWriter& writer) {
      return follow_stats(services, caller, id, asked, writer);
    };
    co_return response;
  }
  DROVER_CO_TRY(const auto history, co_await read_stats(services, caller, id, asked));
  response.body = text_of(history, record, asked.resolution) + "\n";
  co_return response;
}

}  // namespace drover::api

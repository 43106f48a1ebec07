// The outputs of a task, up to now or live: one of them raw, both as events. A live answer also tells the
// task's state each time that it changes, so that one connection is all that `drover run` needs; its event
// ids are positions in both outputs, and a client that lost the connection goes on exactly where it was.

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/this_coro.hpp>
#include <nlohmann/json.hpp>

#include "api/async.h"
#include "api/merged_output.h"
#include "api/native/handlers.h"
#include "api/native/views.h"
#include "api/sse.h"
#include "api/timed_lines.h"
#include "api/typing.h"
#include "api/wakeup.h"
#include "api/workers.h"
#include "base/instant.h"
#include "control/record.h"

namespace drover::api {

using nlohmann::json;

namespace {

// More comes soon after what came, and after what was typed; a task that is silent is looked at rarely.
constexpr std::chrono::milliseconds kShortestPause{4};
constexpr std::chrono::milliseconds kLongestPause{100};
constexpr std::int64_t kAllLines = -1;
constexpr std::int64_t kMaxLines = 1'000'000;
constexpr std::size_t kNewsBytes = 64 * 1024;

const std::vector<std::string> kBoth = {"stdout", "stderr"};

/// An answer's way through the output. With times they are put in front of the lines.
struct Telling {
  MergedOutput output;
  std::vector<TimedLines> times;  ///< of each output; none when they are not wanted
};

/// What there is next of one output; "" when there is nothing now.
struct Told {
  std::size_t stream = 0;
  std::string text;
};

/// As much as there is without the other output in between, up to kNewsBytes.
Result<Told> tell(Telling& telling) {
  Told told;
  std::size_t taken = 0;
  while (taken < kNewsBytes) {
    DROVER_TRY(const auto piece, telling.output.peek());
    if (piece.bytes.empty() || (taken > 0 && piece.stream != told.stream)) break;
    told.stream = piece.stream;
    if (telling.times.empty())
      told.text += piece.bytes;
    else
      told.text += telling.times[piece.stream].take(piece.bytes, piece.at);
    taken += piece.bytes.size();
    telling.output.take(piece, piece.bytes.size());
  }
  return told;
}

/// The same as events, of all outputs; "" when there are none.
Result<std::string> tell_events(Telling& telling) {
  std::string events;
  while (events.size() < kNewsBytes) {
    DROVER_TRY(const auto told, tell(telling));
    if (told.text.empty()) break;
    auto value = view_bytes(told.text);
    value["stream"] = telling.output.name(told.stream);
    events += sse_event("log", telling.output.position(), value.dump());
  }
  return events;
}

/// Whether there was any.
asio::awaitable<bool> send_news(FairPool& pool, uid_t caller, std::shared_ptr<Telling> telling,
                                BodyWriter& writer) {
  for (bool sent = false;; sent = true) {
    auto news = co_await on_pool(pool, caller, [telling] { return tell_events(*telling); });
    // The caller has too many followers: this one has its turn at the next look.
    if (!news && news.error().kind == ErrorKind::kUnavailable) co_return sent;
    if (!news) throw std::runtime_error(to_string(news.error()));
    if (news->empty()) co_return sent;
    co_await writer.write(std::move(*news));
  }
}

asio::awaitable<void> follow_task(Services services, engine::Caller caller, std::string id,
                                  std::shared_ptr<Telling> telling, BodyWriter& writer) {
  Wakeup wakeup(co_await asio::this_coro::executor, *services.daemon);
  auto pause = kShortestPause;
  const auto typing = services.typing->listen(id, [&] {
    pause = kShortestPause;
    wakeup.wake();
  });
  std::optional<control::TaskRecord> last;
  auto last_sent = std::chrono::steady_clock::now();
  while (true) {
    // The state is read before the output: what a task wrote before it ended is there when it has ended.
    const auto record = services.daemon->task(caller, id);
    const bool ended = !record || control::is_final(record->state);
    bool sent = false;
    if (!ended && last != *record) {
      last = *record;
      co_await writer.write(sse_event("state", "", control::text_of(*record)));
      sent = true;
    }
    if (co_await send_news(services.workers->files, caller.user.uid, telling, writer)) sent = true;
    if (ended) {
      if (record) co_await writer.write(sse_event("end", "", control::text_of(*record)));
      co_return;
    }
    const auto now = std::chrono::steady_clock::now();
    if (!sent && now - last_sent > kSseHeartbeat) {
      co_await writer.write(sse_heartbeat());
      sent = true;
    }
    if (sent) {
      last_sent = now;
      pause = kShortestPause;
    }
    co_await wakeup.wait(pause);
    pause = std::min(2 * pause, kLongestPause);
  }
}

/// Everything that was there when the request came, and no more.
asio::awaitable<void> send_output(FairPool& pool, uid_t caller, std::shared_ptr<Telling> telling,
                                  bool as_events, BodyWriter& writer) {
  while (true) {
    auto piece = co_await on_pool(pool, caller, [telling, as_events] {
      return as_events ? tell_events(*telling)
                       : tell(*telling).map([](Told told) { return std::move(told.text); });
    });
    if (!piece) throw std::runtime_error(to_string(piece.error()));
    if (piece->empty()) co_return;
    co_await writer.write(std::move(*piece));
  }
}

/// What is asked for.
struct LogQuery {
  std::vector<std::string> streams;
  bool follow = false, timestamps = false;
  bool as_events = false;
  std::int64_t tail = kAllLines;
  std::optional<TimePoint> since;
};

/// "2026-11-26T10:00:00Z", or how long ago: "10m", "90" seconds.
Result<std::optional<TimePoint>> read_since(const std::string& text) {
  if (text.empty()) return std::nullopt;
  if (const auto ago = parse_duration(text)) return std::max(TimePoint(), wall_clock() - *ago);
  if (const auto moment = parse_instant(text)) return *moment;
  return fail(ErrorKind::kInvalid, fmt::format("'{}' is neither a time nor so long ago", text),
              "write for example 10m, or 2026-11-26T10:00:00Z", "?since");
}

Result<std::vector<std::string>> chosen_streams(const std::string& stream, bool follow) {
  if (stream == "stdout" || stream == "stderr") return std::vector<std::string>{stream};
  if (stream == "both" || (stream.empty() && follow)) return kBoth;
  if (stream.empty()) return std::vector<std::string>{"stdout"};
  return fail(ErrorKind::kInvalid, fmt::format("'{}' is not an output of a task", stream),
              "it is stdout, stderr or both", "?stream");
}

Result<LogQuery> read_log_query(const Request& request) {
  Query query(request);
  LogQuery asked;
  const auto stream = query.text("stream");
  const auto since = query.text("since");
  asked.follow = query.boolean("follow", false);
  asked.timestamps = query.boolean("timestamps", false);
  asked.tail = query.integer("tail", kAllLines, kMaxLines, kAllLines);
  DROVER_CHECK_OK(query.finish());
  DROVER_TRY(asked.streams, chosen_streams(stream, asked.follow));
  DROVER_TRY(asked.since, read_since(since));
  asked.as_events = asked.follow || stream == "both";
  return asked;
}

/// Goes to where the answer begins: behind what the client has, or else to what it asks for.
Status begin_telling(Telling& telling, const LogQuery& asked, const std::string& last_event) {
  auto& output = telling.output;
  if (!last_event.empty()) {
    output.seek(last_event);
    for (std::size_t i = 0; i < telling.times.size(); ++i)
      telling.times[i] =
          TimedLines(output.at_line_start(i) ? TimedLines::Begin::kLine : TimedLines::Begin::kMiddle);
  } else {
    if (asked.since) DROVER_CHECK_OK(output.seek_since(*asked.since));
    if (asked.tail != kAllLines) DROVER_CHECK_OK(output.seek_tail(asked.tail));
  }
  return asked.follow ? Status() : output.stop_at_end();
}

}  // namespace

asio::awaitable<Result<Response>> get_logs(const Services& services, const Request& request) {
  DROVER_CO_TRY(const auto asked, read_log_query(request));
  auto& daemon = *services.daemon;
  const auto& caller = *request.caller;
  DROVER_CO_TRY(const auto record, daemon.task(caller, request.parameters.at("id")));
  DROVER_CO_TRY(const auto folder, daemon.sandbox(caller, record.task.id));
  const auto begin = [&folder, &asked, user = caller.user,
                      last_event = request.last_event_id]() -> Result<std::shared_ptr<Telling>> {
    auto telling =
        std::make_shared<Telling>(MergedOutput(folder, asked.streams, user, asked.timestamps),
                                  std::vector<TimedLines>(asked.timestamps ? asked.streams.size() : 0));
    DROVER_CHECK_OK(begin_telling(*telling, asked, last_event));
    return telling;
  };
  auto& pool = services.workers->files;
  DROVER_CO_TRY(const auto telling, co_await on_pool(pool, caller.user.uid, begin));
  Response response;
  response.content_type = asked.as_events ? "text/event-stream" : "text/plain; charset=utf-8";
  response.stream = [services, caller, id = record.task.id, telling, asked, &pool](BodyWriter& writer) {
    return asked.follow ? follow_task(services, caller, id, telling, writer)
                        : send_output(pool, caller.user.uid, telling, asked.as_events, writer);
  };
  co_return response;
}

}  // namespace drover::api

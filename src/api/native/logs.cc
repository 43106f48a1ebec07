// The outputs of a task, raw up to now or live. A live answer also tells the task's state each time that it
// changes, so that one connection is all that `drover run` needs; its event ids are positions in both
// outputs, and a client that lost the connection goes on exactly where it was.

#include <fmt/format.h>

#include <boost/asio/this_coro.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "api/async.h"
#include "api/native/handlers.h"
#include "api/native/views.h"
#include "api/sse.h"
#include "api/typing.h"
#include "api/wakeup.h"
#include "api/workers.h"
#include "control/record.h"

namespace drover::api {

using nlohmann::json;

namespace {

// More comes soon after what came, and after what was typed; a task that is silent is looked at rarely.
constexpr std::chrono::milliseconds kShortestPause{4};
constexpr std::chrono::milliseconds kLongestPause{100};
constexpr std::int64_t kAllLines = -1;
constexpr std::int64_t kMaxLines = 1'000'000;

using Readers = std::vector<LogReader>;

/// "stdout=INODE:OFFSET;stderr=INODE:OFFSET"
std::string format_positions(const Readers& readers) {
  std::string text;
  for (const auto& reader : readers)
    text += fmt::format("{}{}={}:{}", text.empty() ? "" : ";", reader.name(), reader.position().inode,
                        reader.position().offset);
  return text;
}

void seek_positions(Readers& readers, const std::string& text) {
  for (auto& reader : readers) {
    LogPosition position;
    const auto at = text.find(reader.name() + "=");
    if (at == std::string::npos) continue;
    if (std::sscanf(text.c_str() + at + reader.name().size() + 1, "%lu:%lu", &position.inode,
                    &position.offset) == 2)
      reader.seek(position);
  }
}

/// What follow_task() has to tell; made on the pool.
struct News {
  std::string text;
  bool more = false;
};

Result<News> read_news(Readers& readers) {
  News news;
  for (auto& reader : readers) {
    DROVER_TRY(auto piece, reader.read());
    if (piece.empty()) continue;
    auto value = view_bytes(piece);
    value["stream"] = reader.name();
    news.text += sse_event("log", format_positions(readers), value.dump());
    news.more = true;
  }
  return news;
}

/// Whether there was any.
asio::awaitable<bool> send_news(FairPool& pool, uid_t caller, std::shared_ptr<Readers> readers,
                                BodyWriter& writer) {
  for (bool sent = false;; sent = true) {
    auto news = co_await on_pool(pool, caller, [readers] { return read_news(*readers); });
    // The caller has too many followers: this one has its turn at the next look.
    if (!news && news.error().kind == ErrorKind::kUnavailable) co_return sent;
    if (!news) throw std::runtime_error(to_string(news.error()));
    if (!news->more) co_return sent;
    co_await writer.write(std::move(news->text));
  }
}

asio::awaitable<void> follow_task(Services services, engine::Caller caller, std::string id,
                                  std::shared_ptr<Readers> readers, BodyWriter& writer) {
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
    if (co_await send_news(services.workers->files, caller.user.uid, readers, writer)) sent = true;
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

/// Everything that is there when the request comes, and no more.
asio::awaitable<void> send_output(FairPool& pool, uid_t caller, std::shared_ptr<LogReader> reader,
                                  BodyWriter& writer) {
  auto pending = co_await on_pool(pool, caller, [reader] { return reader->pending(); });
  if (!pending) throw std::runtime_error(to_string(pending.error()));
  while (*pending > 0) {
    auto piece = co_await on_pool(pool, caller, [reader] { return reader->read(); });
    if (!piece) throw std::runtime_error(to_string(piece.error()));
    if (piece->empty()) co_return;
    if (piece->size() > *pending) piece->resize(*pending);
    *pending -= piece->size();
    co_await writer.write(std::move(*piece));
  }
}

Response live_response(const Services& services, const engine::Caller& caller, const std::string& id,
                       std::shared_ptr<Readers> readers) {
  Response response;
  response.content_type = "text/event-stream";
  response.stream = [services, caller, id, readers](BodyWriter& writer) {
    return follow_task(services, caller, id, readers, writer);
  };
  return response;
}

Response raw_response(const Services& services, uid_t caller, LogReader reader) {
  Response response;
  response.content_type = "text/plain; charset=utf-8";
  response.stream = [&pool = services.workers->files, caller,
                     shared = std::make_shared<LogReader>(std::move(reader))](BodyWriter& writer) {
    return send_output(pool, caller, shared, writer);
  };
  return response;
}

Result<std::vector<std::string>> chosen_streams(const std::string& stream, bool follow) {
  if (stream == "stdout" || stream == "stderr") return std::vector<std::string>{stream};
  if (stream.empty())
    return follow ? std::vector<std::string>{"stdout", "stderr"} : std::vector<std::string>{"stdout"};
  return fail(ErrorKind::kInvalid, fmt::format("'{}' is not an output of a task", stream),
              "it is stdout or stderr", "?stream");
}

}  // namespace

asio::awaitable<Result<Response>> get_logs(const Services& services, const Request& request) {
  Query query(request);
  const auto stream = query.text("stream");
  const bool follow = query.boolean("follow", false);
  const auto tail = query.integer("tail", kAllLines, kMaxLines, kAllLines);
  DROVER_CO_CHECK_OK(query.finish());
  DROVER_CO_TRY(const auto names, chosen_streams(stream, follow));
  auto& daemon = *services.daemon;
  DROVER_CO_TRY(const auto record, daemon.task(*request.caller, request.parameters.at("id")));
  DROVER_CO_TRY(const auto folder, daemon.sandbox(*request.caller, record.task.id));

  const auto readers = std::make_shared<Readers>();
  for (const auto& name : names) readers->emplace_back(folder, name, request.caller->user);
  if (!request.last_event_id.empty()) {
    seek_positions(*readers, request.last_event_id);
  } else if (tail != kAllLines) {
    const auto seek = [readers, tail]() -> Status {
      for (auto& reader : *readers) DROVER_CHECK_OK(reader.seek_tail(tail));
      return {};
    };
    DROVER_CO_CHECK_OK(co_await on_pool(services.workers->files, request.caller->user.uid, seek));
  }
  if (follow) co_return live_response(services, *request.caller, record.task.id, readers);
  co_return raw_response(services, request.caller->user.uid, std::move(readers->front()));
}

}  // namespace drover::api

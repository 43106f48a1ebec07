#include <boost/asio/this_coro.hpp>
#include <charconv>
#include <nlohmann/json.hpp>

#include "api/async.h"
#include "api/native/handlers.h"
#include "api/native/views.h"
#include "api/sse.h"
#include "api/wakeup.h"

namespace drover::api {

using nlohmann::json;

namespace {

constexpr std::int64_t kMaxNumber = std::int64_t{1} << 53;

/// In one piece: a follower who reads slowly holds no more than this.
constexpr std::size_t kPiece = 32U << 10;
constexpr std::size_t kAtOnce = 128;

asio::awaitable<void> follow_events(engine::Views& daemon, engine::Caller caller, std::uint64_t after,
                                    BodyWriter& writer) {
  Wakeup wakeup(co_await asio::this_coro::executor, daemon);
  while (true) {
    std::string text;
    for (const auto& event : daemon.events(caller, after, kAtOnce)) {
      if (text.size() > kPiece) break;
      text += sse_event(event.kind, std::to_string(event.number), text_of(event));
      after = event.number;
    }
    if (!text.empty()) {
      co_await writer.write(std::move(text));
      continue;
    }
    if (!co_await wakeup.wait(kSseHeartbeat)) co_await writer.write(sse_heartbeat());
  }
}

}  // namespace

asio::awaitable<Result<Response>> get_events(const Services& services, const Request& request) {
  Query query(request);
  auto after = static_cast<std::uint64_t>(query.integer("after", 0, kMaxNumber, 0));
  const bool follow = query.boolean("follow", true);
  DROVER_CO_CHECK_OK(query.finish());
  const auto& last = request.last_event_id;
  std::uint64_t resumed = 0;
  if (std::from_chars(last.data(), last.data() + last.size(), resumed).ec == std::errc()) after = resumed;

  auto& daemon = *services.daemon;
  if (!follow) {
    const auto write = [all = daemon.events(*request.caller, after, SIZE_MAX)]() -> Result<Response> {
      json events = json::array();
      for (const auto& event : all) events.push_back(json::parse(text_of(event)));
      return json_response({{"events", std::move(events)}});
    };
    co_return co_await write_beside(services, *request.caller, write);
  }
  Response response;
  response.content_type = "text/event-stream";
  response.stream = [&daemon, caller = *request.caller, after](BodyWriter& writer) {
    return follow_events(daemon, caller, after, writer);
  };
  co_return response;
}

}  // namespace drover::api

#include <boost/asio/this_coro.hpp>
#include <charconv>
#include <stdexcept>

#include "api/async.h"
#include "api/native/handlers.h"
#include "api/native/views.h"
#include "api/sse.h"
#include "api/wakeup.h"
#include "workload/event_kinds.h"

namespace drover::api {
namespace {

constexpr std::int64_t kMaxNumber = std::int64_t{1} << 53;
constexpr std::int64_t kMostNewest = 1'000'000;
constexpr std::size_t kLongestName = 4096;  ///< in bytes: nothing is called anything longer
constexpr std::size_t kMostKinds = 64;

using engine::EventOrder;
using engine::EventPage;
using engine::EventQuery;

struct AskedEvents {
  EventQuery query;
  std::size_t newest = 0;  ///< only so many of those that there are; 0: all
  bool follow = true;
};

std::string text_of_filter(Query& query, const std::string& name) {
  const auto texts = query.texts(name, [](const std::string& text) -> Status {
    if (!text.empty() && text.size() <= kLongestName) return {};
    return fail(ErrorKind::kInvalid, text.empty() ? "expected a name, found none" : "the name is too long");
  });
  return texts.empty() ? "" : texts.back();
}

Result<AskedEvents> asked_events(const Request& request) {
  Query query(request);
  AskedEvents asked;
  auto& wanted = asked.query;
  wanted.after = static_cast<std::uint64_t>(query.integer("after", 0, kMaxNumber, 0));
  wanted.before = static_cast<std::uint64_t>(query.integer("before", 0, kMaxNumber, kMaxNumber));
  wanted.kinds = query.texts("kind", workload::check_event_kind);
  wanted.task = text_of_filter(query, "task");
  wanted.user = text_of_filter(query, "user");
  wanted.since = query.time("since");
  wanted.until = query.time("until");
  asked.newest = static_cast<std::size_t>(query.integer("limit", 1, kMostNewest, 0));
  asked.follow = query.boolean("follow", true);
  DROVER_CHECK_OK(query.finish());
  if (wanted.kinds.size() > kMostKinds)
    return fail(ErrorKind::kInvalid, "Too many kinds are asked for", "name each once", "?kind");
  const auto& caller = *request.caller;
  if (!wanted.user.empty() && !caller.is_root() && wanted.user != caller.user.name)
    return fail(ErrorKind::kPermissionDenied, "Only root may ask for the events of others", "leave it out",
                "?user");
  const auto& last = request.last_event_id;
  std::uint64_t resumed = 0;
  if (std::from_chars(last.data(), last.data() + last.size(), resumed).ec == std::errc()) {
    wanted.after = resumed;
    asked.newest = 0;  // whoever goes on misses nothing
  }
  return asked;
}

asio::awaitable<Result<EventPage>> page_of(engine::Api& daemon, const engine::Caller& caller,
                                           const EventQuery& query, EventOrder order) {
  const auto start = [&](engine::EventPageTaker done) {
    daemon.events(caller, query, order, std::move(done));
  };
  co_return co_await callback_result<Result<EventPage>>(start);
}

/// The number behind which the newest so many are.
asio::awaitable<Result<std::uint64_t>> before_newest(engine::Api& daemon, const engine::Caller& caller,
                                                     EventQuery query, std::size_t newest) {
  while (true) {
    DROVER_CO_TRY(const auto page, co_await page_of(daemon, caller, query, EventOrder::kNewestFirst));
    for (const auto& event : page.events)
      if (--newest == 0) co_return event.number - 1;
    if (page.end) co_return query.after;
    query.before = page.reached;
  }
}

/// Of an answer that has begun: the client comes again, and goes on where it was.
EventPage taken(Result<EventPage> page) {
  if (!page) throw std::runtime_error(page.error().message);
  return std::move(*page);
}

asio::awaitable<void> follow_events(engine::Api& daemon, engine::Caller caller, EventQuery query,
                                    BodyWriter& writer) {
  Wakeup wakeup(co_await asio::this_coro::executor, daemon);
  while (true) {
    const auto now = daemon.now();
    const auto page = taken(co_await page_of(daemon, caller, query, EventOrder::kOldestFirst));
    query.after = page.reached;
    std::string text;
    for (const auto& event : page.events)
      text += sse_event(event.kind, std::to_string(event.number), text_of(event));
    if (!text.empty()) co_await writer.write(std::move(text));
    if (!page.end) continue;
    if (query.until && now > *query.until) co_return;
    std::chrono::milliseconds longest = kSseHeartbeat;
    if (query.until) longest = std::min(longest, *query.until - now + std::chrono::milliseconds(1));
    if (!co_await wakeup.wait(longest)) co_await writer.write(sse_heartbeat());
  }
}

void add_items(std::string& text, const EventPage& page, bool& first) {
  for (const auto& event : page.events) {
    if (!std::exchange(first, false)) text += ',';
    text += text_of(event);
  }
}

/// Piece by piece, however many there are.
asio::awaitable<void> write_list(engine::Api& daemon, engine::Caller caller, EventQuery query, EventPage page,
                                 BodyWriter& writer) {
  std::string text = R"({"events":[)";
  bool first = true;
  while (true) {
    add_items(text, page, first);
    if (page.end) text += "]}\n";
    if (!text.empty()) co_await writer.write(std::exchange(text, {}));
    if (page.end) co_return;
    query.after = page.reached;
    page = taken(co_await page_of(daemon, caller, query, EventOrder::kOldestFirst));
  }
}

asio::awaitable<Result<Response>> list_events(engine::Api& daemon, const engine::Caller& caller,
                                              EventQuery query) {
  DROVER_CO_TRY(auto page, co_await page_of(daemon, caller, query, EventOrder::kOldestFirst));
  Response response;
  if (page.end) {
    bool first = true;
    response.body = R"({"events":[)";
    add_items(response.body, page, first);
    response.body += "]}\n";
    co_return response;
  }
  response.stream = [&daemon, caller, query, page = std::move(page)](BodyWriter& writer) {
    return write_list(daemon, caller, query, page, writer);
  };
  co_return response;
}

}  // namespace

asio::awaitable<Result<Response>> get_events(const Services& services, const Request& request) {
  DROVER_CO_TRY(auto asked, asked_events(request));
  auto& daemon = *services.daemon;
  const auto& caller = *request.caller;
  auto& query = asked.query;
  if (asked.newest > 0) {
    DROVER_CO_TRY(query.after, co_await before_newest(daemon, caller, query, asked.newest));
  }
  if (!asked.follow) co_return co_await list_events(daemon, caller, query);
  Response response;
  response.content_type = "text/event-stream";
  response.stream = [&daemon, caller, query](BodyWriter& writer) {
    return follow_events(daemon, caller, query, writer);
  };
  co_return response;
}

}  // namespace drover::api

// The stream of events (server-sent events).

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "api/async.h"
#include "api/marathon/answers.h"
#include "api/marathon/handlers.h"
#include "api/marathon/parts.h"
#include "api/sse.h"

namespace drover::api::marathon_v2 {
namespace {

constexpr std::size_t kPiece = 32U << 10;

asio::awaitable<void> stream_to(EventHub& hub, engine::Caller caller, std::set<std::string> types,
                                BodyWriter& writer) {
  asio::steady_timer timer(co_await asio::this_coro::executor);
  auto follower = hub.follow(caller, std::move(types), [&timer] { timer.cancel(); });
  const std::shared_ptr<void> detach(nullptr, [&](void*) {
    follower.reset();
    hub.publish_detached();
  });
  while (!follower->cut()) {
    if (auto text = follower->take(kPiece); !text.empty()) {
      co_await writer.write(std::move(text));
      continue;
    }
    timer.expires_after(kSseHeartbeat);
    const auto [error] = co_await timer.async_wait(kAsTuple);
    if (!error) co_await writer.write(sse_heartbeat());
  }
}

}  // namespace

Answer follow_events(const Services& services, const Request& request) {
  std::set<std::string> types;
  for (auto& type : values(request, "event_type")) types.insert(std::move(type));
  auto response = answer(services, "");
  response.content_type = "text/event-stream";
  response.stream = [&hub = services.marathon->events, caller = *request.caller, types](BodyWriter& writer) {
    return stream_to(hub, caller, types, writer);
  };
  return response;
}

}  // namespace drover::api::marathon_v2

#include "api/wakeup.h"

#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "api/async.h"

namespace drover::api {

namespace asio = boost::asio;

Wakeup::Wakeup(asio::any_io_executor executor, engine::Views& daemon) : timer_(std::move(executor)) {
  subscription_ = daemon.subscribe([this] { wake(); });
}

void Wakeup::wake() {
  happened_ = true;
  timer_.cancel();
}

asio::awaitable<bool> Wakeup::wait(std::chrono::milliseconds longest) {
  if (!happened_) {
    timer_.expires_after(longest);
    co_await timer_.async_wait(kAsTuple);
  }
  co_return std::exchange(happened_, false);
}

}  // namespace drover::api

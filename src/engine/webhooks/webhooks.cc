#include "engine/webhooks/webhooks.h"

#include <fmt/format.h>

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <deque>
#include <random>
#include <thread>
#include <utility>

#include "base/pause.h"
#include "engine/webhooks/post.h"

namespace drover::engine {

namespace asio = boost::asio;

namespace {

constexpr std::chrono::hours kLongestPause{1};

}  // namespace

class Webhooks::Impl {
 public:
  explicit Impl(WebhookOptions options)
      : options_(std::move(options)),
        guard_(asio::make_work_guard(context_)),
        thread_([this] { context_.run(); }) {}
  ~Impl() {
    context_.stop();
    thread_.join();
  }

  bool send(WebhookMessage message) {
    if (open_.fetch_add(1) >= options_.most_waiting) {
      --open_;
      return false;
    }
    asio::post(context_, [this, message = std::move(message)]() mutable {
      waiting_.push_back(std::move(message));
      go_on();
    });
    return true;
  }

 private:
  void go_on() {
    while (!waiting_.empty() && busy_ < options_.most_at_once) {
      ++busy_;
      asio::co_spawn(context_, deliver(std::move(waiting_.front())), asio::detached);
      waiting_.pop_front();
    }
  }

  asio::awaitable<void> deliver(WebhookMessage message) {
    co_await asio::post(context_, asio::use_awaitable);  // what fails at once must not be within go_on()
    Backoff backoff(options_.pause, kLongestPause, std::random_device()());
    for (int left = options_.tries; left > 0; --left) {
      const auto answer = co_await post_json(message.to, message.body, options_.timeout);
      if (answer.taken) break;
      const bool again = answer.worth_repeating && left > 1;
      if (options_.log)
        options_.log(fmt::format("The webhook at '{}' was not told of run '{}': {}{}", message.to.host,
                                 message.run, answer.trouble, again ? "; it is tried again" : ""));
      if (!again) break;
      asio::steady_timer timer(context_, backoff.next());
      --busy_;  // others need not wait for it meanwhile
      go_on();
      co_await timer.async_wait(asio::use_awaitable);
      ++busy_;  // for the length of a try perhaps one more than most_at_once
    }
    --busy_;
    --open_;
    go_on();
  }

  WebhookOptions options_;
  std::atomic<std::size_t> open_ = 0;  ///< messages that have come and are not done with
  // On the thread:
  asio::io_context context_{1};
  std::deque<WebhookMessage> waiting_;
  int busy_ = 0;
  asio::executor_work_guard<asio::io_context::executor_type> guard_;
  std::thread thread_;
};

Webhooks::Webhooks(WebhookOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Webhooks::~Webhooks() = default;

bool Webhooks::send(WebhookMessage message) {
  return impl_->send(std::move(message));
}

}  // namespace drover::engine

#pragma once

// Waiting for the next thing to happen in the daemon, or for some time, whichever comes first. Used on the
// control strand only.

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>

#include "engine/api.h"

namespace drover::api {

class Wakeup {
 public:
  Wakeup(boost::asio::any_io_executor executor, engine::Views& daemon);
  Wakeup(const Wakeup&) = delete;
  Wakeup& operator=(const Wakeup&) = delete;

  /// Returns true after an event, also one since the last wait; false when `longest` went by without any.
  boost::asio::awaitable<bool> wait(std::chrono::milliseconds longest);
  /// As if something had happened.
  void wake();

 private:
  boost::asio::steady_timer timer_;
  bool happened_ = false;
  std::shared_ptr<void> subscription_;
};

}  // namespace drover::api

#pragma once

// Before work is accepted, the images that it names are looked at: what their variants need is then a
// condition on its GPUs, and what can never run is refused at once.

#include <string>
#include <vector>

#include "api/async.h"
#include "engine/api.h"

namespace drover::api {

inline boost::asio::awaitable<void> inspect_images(engine::Decisions& daemon, const engine::Caller& caller,
                                                   std::vector<std::string> images) {
  if (images.empty()) co_return;
  const auto start = [&](std::function<void(bool)> done) {
    daemon.inspect_images(caller, images, [done = std::move(done)] { done(true); });
  };
  (void)co_await callback_result<bool>(start);
}

}  // namespace drover::api

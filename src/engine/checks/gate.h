#pragma once

// Lets so many in, and of each user so many: the others wait, and the users among them take turns. So whoever
// has many checks that hang holds up none but his own. Used on one thread.

#include <sys/types.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <deque>
#include <map>
#include <memory>

#include "base/as_tuple.h"

namespace drover::engine {

class Gate {
 public:
  struct Most {
    std::size_t inside;
    std::size_t of_user;
  };
  explicit Gate(Most most) : most_(most) {}

  boost::asio::awaitable<void> enter(uid_t user) {
    auto& share = shares_[user];
    if (inside_ < most_.inside && share.inside < most_.of_user && share.waiting.empty()) {
      ++inside_;
      ++share.inside;
      co_return;
    }
    using Timer = boost::asio::steady_timer;
    const auto waiting =
        std::make_shared<Timer>(co_await boost::asio::this_coro::executor, Timer::time_point::max());
    share.waiting.push_back(waiting);
    if (share.waiting.size() == 1) turns_.push_back(user);
    (void)co_await waiting->async_wait(kAsTuple);
  }
  /// Whoever comes in next takes the place that becomes free.
  void leave(uid_t user) {
    --inside_;
    if (auto& share = shares_.at(user); --share.inside == 0 && share.waiting.empty()) shares_.erase(user);
    let_in();
  }

 private:
  struct Share {
    std::size_t inside = 0;
    std::deque<std::shared_ptr<boost::asio::steady_timer>> waiting;
  };

  void let_in() {
    for (std::size_t asked = 0; inside_ < most_.inside && asked < turns_.size();) {
      const auto user = turns_.front();
      turns_.pop_front();
      auto& share = shares_.at(user);
      if (share.inside >= most_.of_user) {
        turns_.push_back(user);
        ++asked;
        continue;
      }
      ++inside_;
      ++share.inside;
      share.waiting.front()->cancel();
      share.waiting.pop_front();
      if (!share.waiting.empty()) turns_.push_back(user);
      asked = 0;
    }
  }

  Most most_;
  std::size_t inside_ = 0;
  std::map<uid_t, Share> shares_;
  std::deque<uid_t> turns_;  ///< users of whom somebody waits
};

}  // namespace drover::engine

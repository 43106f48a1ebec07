#pragma once

// When pods were seen to be bound, or to be told why they wait: a watch that begins when it is made. Thread
// safe.

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "kube/client/api.h"

namespace drover::bench {

using WallTime = std::chrono::system_clock::time_point;

enum class Seen { kBound, kReason };

class Observer {
 public:
  /// Of pods of this scheduler, whose names begin so, that come to be so after it was made. `api` outlives
  /// it.
  static Result<std::unique_ptr<Observer>> start(kube::Api& api, const std::string& name_space,
                                                 const std::string& scheduler, Seen what,
                                                 std::string prefix = "");
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;

  /// Whether so many were seen in that time.
  bool wait_for(std::size_t count, std::chrono::milliseconds patience) const;
  /// By name.
  std::map<std::string, WallTime> seen() const;

 private:
  Observer(kube::Api& api, kube::WatchRequest request, Seen what, std::string prefix);
  void run(const std::stop_token& stop);

  kube::Api& api_;
  kube::WatchRequest request_;
  const Seen what_;
  const std::string prefix_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::map<std::string, WallTime> seen_;
  std::jthread thread_;
};

}  // namespace drover::bench

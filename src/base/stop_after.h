#pragma once

// A stop token that is also asked to stop after a while: for calls that can only be stopped from outside.

#include <chrono>
#include <stop_token>
#include <thread>

namespace drover {

class StopAfter {
 public:
  StopAfter(std::chrono::milliseconds limit, std::stop_token other);
  StopAfter(const StopAfter&) = delete;
  StopAfter& operator=(const StopAfter&) = delete;

  std::stop_token token() const { return stop_.get_token(); }

 private:
  struct Request {
    std::stop_source& stop;
    void operator()() const { stop.request_stop(); }
  };

  std::stop_source stop_;
  std::stop_callback<Request> other_;
  std::jthread clock_;  ///< ends first
};

}  // namespace drover

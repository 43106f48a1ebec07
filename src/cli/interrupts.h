#pragma once

// Ctrl-C and its kin as calls on a thread of their own, where they may take their time and use the network.
// Create it before any other thread: the signals are blocked in the calling thread and those it starts.

#include <functional>
#include <thread>

#include "base/fd.h"

namespace drover::cli {

class Interrupts {
 public:
  /// Calls `handle` with the number of each SIGINT, SIGTERM or SIGHUP until this dies. A SIGHUP that this
  /// process ignores stays ignored.
  explicit Interrupts(std::function<void(int signal)> handle);
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

 private:
  void listen();

  std::function<void(int)> handle_;
  UniqueFd signals_;
  UniqueFd quit_;
  std::thread thread_;
};

}  // namespace drover::cli

#pragma once

// The work of one context on its GPU: first in, first out, on a thread that starts with the first work that
// takes time. Kernels do not run; what is left of one is how long it has the GPU, in turns that all contexts
// of the machine take (sim/live_process.h). Thread safe. Throws std::system_error when the thread cannot be
// started.

#include <pthread.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>

#include "sim/live_process.h"

namespace drover::sim::cuda {

class WorkQueue {
 public:
  /// Called with the moment at which all work before has ended, on the clock of monotonic_ns().
  using Action = std::function<void(std::uint64_t at_ns)>;
  /// Names work: that of a lower number has ended when it has.
  using Ticket = std::uint64_t;

  /// Work on the GPU at a position of the profile; `live` must outlive this.
  WorkQueue(LiveProcess& live, std::size_t gpu) : live_(&live), gpu_(gpu) {}
  ~WorkQueue() { stop(); }
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  /// The GPU is busy for so long. What takes no time and waits for nothing is done at once.
  Ticket spin(std::uint64_t ns);
  /// Called at once, on this thread, when nothing is before it.
  Ticket run(Action action);
  /// Called on the queue's own thread in any case: for what may wait, or take a client's locks.
  Ticket run_elsewhere(Action action);
  /// The latest ticket that was given out.
  Ticket last() const;
  bool done(Ticket ticket) const;
  void wait(Ticket ticket);
  /// Waits for all.
  void drain() { wait(last()); }
  /// Ends the thread, after all that was given; none may be given meanwhile.
  void stop();
  /// Called by the queue's own thread, that is, by an action.
  bool on_own_thread() const;

 private:
  struct Work {
    std::uint64_t submitted_ns = 0;
    std::uint64_t spin_ns = 0;
    Action action;  ///< null: spins
  };

  Ticket push(Work work);
  void start();
  void work();
  void take_turn(std::unique_lock<std::mutex>& lock);
  void finish_front();

  LiveProcess* const live_;
  const std::size_t gpu_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> queue_;
  Ticket given_ = 0;
  Ticket done_ = 0;
  std::uint64_t ended_ns_ = 0;  ///< when the last work ended
  pthread_t thread_{};
  bool started_ = false;
  bool stopping_ = false;
  bool acting_ = false;  ///< an action runs outside of the lock, on the thread that submitted it
};

}  // namespace drover::sim::cuda

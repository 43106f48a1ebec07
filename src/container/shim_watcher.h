#pragma once

// Watches the shims of this machine: one thread, one epoll over their pidfds. Owns the descriptors. Thread
// safe. The callbacks come from its threads, of one task one at a time, and must not call forget() or the
// destructor. What a task left behind may take long to end, or never does: other tasks do not wait for it.

#include <signal.h>

#include <condition_variable>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "base/fair_pool.h"
#include "base/fd.h"
#include "base/result.h"

namespace drover::container {

class ShimWatcher {
 public:
  struct Callbacks {
    /// Now and then, for every shim that was added with `starting`, until it returns true.
    std::function<bool(const std::string& task_id)> has_started;
    /// It is gone (and reaped, if it was our child). Again every second until it returns true: while what it
    /// left behind does not end, its task has not ended either.
    std::function<bool(const std::string& task_id)> ended;
  };

  static Result<std::unique_ptr<ShimWatcher>> start(Callbacks callbacks);
  ~ShimWatcher();

  Status add(const std::string& task_id, UniqueFd shim, bool starting);
  /// kNotFound when no such shim is watched. A shim that is gone needs no signal.
  Status signal(const std::string& task_id, int signal);
  /// Not while `ended` is asked for the first time: mostly that tells of the end.
  bool watches(const std::string& task_id) const;
  /// Watches it no more; the result is its pidfd, invalid when it was not watched. No callback is running for
  /// it, or will come, once this has returned.
  UniqueFd forget(const std::string& task_id);

 private:
  explicit ShimWatcher(Callbacks callbacks) : callbacks_(std::move(callbacks)) {}
  void run();
  void ask_starting();
  void end(int shim);
  /// Asks `ended`, on a thread that may block.
  enum Attempt : FairPool::Key { kFirstAttempt, kLaterAttempt };
  void settle(const std::string& task_id, Attempt attempt);
  void settle_again();

  Callbacks callbacks_;
  UniqueFd epoll_;
  UniqueFd wake_;  ///< an eventfd: a shim was added that is starting, or it is time to go
  mutable std::mutex mutex_;
  std::mutex callback_mutex_;  ///< held while has_started() runs; taken before mutex_
  bool stopping_ = false;
  std::map<std::string, UniqueFd> shims_;
  std::set<std::string> starting_;
  enum class Settling { kFirst, kAgain, kToBeAsked };  ///< `ended` is being asked, or waits for its next turn
  std::map<std::string, Settling> settling_;           ///< gone, but `ended` has not returned true yet
  std::condition_variable settled_;
  std::thread thread_;
  FairPool threads_{{.threads = 64, .at_once = 32, .waiting = std::numeric_limits<std::size_t>::max()}};
};

/// Waits until the process of a pidfd is gone, and reaps it if it is our child. kTimeout.
Status await_process(int pidfd, std::chrono::milliseconds timeout);

}  // namespace drover::container

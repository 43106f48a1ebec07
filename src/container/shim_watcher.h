#pragma once

// Watches the shims of this machine: one thread, one epoll over their pidfds. Owns the descriptors. Thread
// safe. The callbacks come from its thread and must not call forget() or the destructor.

#include <signal.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

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
  bool watches(const std::string& task_id) const;
  /// Watches it no more; the result is its pidfd, invalid when it was not watched. No callback is running for
  /// it, or will come, once this has returned.
  UniqueFd forget(const std::string& task_id);

 private:
  explicit ShimWatcher(Callbacks callbacks) : callbacks_(std::move(callbacks)) {}
  void run();
  void ask_starting();
  void settle_ended();
  void end(int shim);

  Callbacks callbacks_;
  UniqueFd epoll_;
  UniqueFd wake_;  ///< an eventfd: a shim was added that is starting, or it is time to go
  mutable std::mutex mutex_;
  std::mutex callback_mutex_;  ///< held while a callback runs; taken before mutex_
  bool stopping_ = false;
  std::map<std::string, UniqueFd> shims_;
  std::set<std::string> starting_;
  std::set<std::string> unsettled_;  ///< gone, but `ended` has not returned true yet
  std::thread thread_;
};

/// Waits until the process of a pidfd is gone, and reaps it if it is our child. kTimeout.
Status await_process(int pidfd, std::chrono::milliseconds timeout);

}  // namespace drover::container

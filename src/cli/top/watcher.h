#pragma once

// Looks again and again, on a thread of its own, so that keys are answered while a daemon is slow or gone.
// Looking takes no more than a hundredth of one processor, however much there is to see. Thread safe.

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "cli/top/source.h"

namespace drover::cli::top {

class Watcher {
 public:
  /// `told` is called on the thread of the watcher when there is something to take(); it must not block.
  Watcher(Source source, std::chrono::milliseconds interval, std::function<void()> told);
  ~Watcher() { close(); }
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  struct News {
    std::optional<Snapshot> snapshot = {};
    std::optional<std::string> trouble = {};  ///< why the last look found nothing; "" after one that did
    std::optional<std::string> message = {};  ///< what came of a stop
  };
  /// What is new since the last call.
  News take();
  void set(std::chrono::milliseconds interval, bool paused);
  void stop(const std::string& task, bool force);
  /// The last look. Waits for what is under way, if that ends soon; otherwise the thread is left behind with
  /// what it needs, and this is false: the process then ends by _exit().
  bool close();

 private:
  struct Shared;
  static void run(const std::shared_ptr<Shared>& shared);

  std::shared_ptr<Shared> shared_;
  std::thread thread_;
};

}  // namespace drover::cli::top

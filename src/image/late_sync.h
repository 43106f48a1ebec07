#pragma once

// Makes layers durable a little after they have become usable, many with one syncfs(2), so that no task waits
// for the disk. Until a layer is on the disk there is a note of it, which was on the disk before the layer
// had its name. Notes are kept by boot: those of an earlier one name the layers that a machine which went
// down may have left damaged. What a daemon that died has left to do, the next one does. Thread safe.

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/files.h"
#include "base/result.h"

namespace drover::image {

class LateSync {
 public:
  /// Long enough for a task that waits for the layers to have started: what starts it is itself synced.
  static constexpr std::chrono::milliseconds kCalm{3000};

  /// Keeps notes below `notes`, which is on the file system of the layers. `lost` is called, from another
  /// thread, for layers that the disk did not take.
  static Result<std::unique_ptr<LateSync>> open(const Directory& notes,
                                                std::function<void(const std::string&)> lost,
                                                std::chrono::milliseconds calm = kCalm);
  /// Makes durable what is not yet.
  ~LateSync();

  /// Layers that nobody may use: the machine went down before they were on the disk.
  Result<std::vector<std::string>> doubtful() const;
  /// They are gone.
  Status clear_doubtful() const;
  /// Layers that had or were about to get their names when the daemon before died; add() those that have.
  Result<std::vector<std::string>> unfinished() const { return own_.list(); }

  /// A layer is to get its name soon. When this returns, it may.
  Status announce(const std::string& layer) const;
  /// It does not, after all.
  void withdraw(const std::string& layer) const;
  /// It has its name.
  void add(const std::string& layer);
  /// It is about to be taken away.
  void forget(const std::string& layer);

 private:
  LateSync(Directory notes, Directory own, std::function<void(const std::string&)> lost,
           std::chrono::milliseconds calm);
  void work(const std::stop_token& stop);
  void sync_pending(std::unique_lock<std::mutex>& lock);

  Directory notes_;
  Directory own_;  ///< of this boot
  std::function<void(const std::string&)> lost_;
  std::chrono::milliseconds calm_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::set<std::string> pending_;
  std::set<std::string> syncing_;
  std::jthread thread_;
};

}  // namespace drover::image

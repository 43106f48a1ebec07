#pragma once

// Copies of what pods write (log_copy.h): while it is written, of so many at once, and the rest of it at the
// end. Thread safe.

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>

#include "base/files.h"
#include "base/result.h"
#include "kube/client/api.h"

namespace drover::pods {

struct OutputLimits {
  std::size_t followed = 256;                    ///< others are copied at their end
  std::chrono::milliseconds last_words{20'000};  ///< how long what was written last may take to come
};

class OutputCopies {
 public:
  /// Of one pod.
  class Copy;
  using CopyPointer = std::shared_ptr<Copy>;

  /// `tasks`: the folder with a folder for each task. All outlives this.
  OutputCopies(kube::Api& api, const Directory& tasks, OutputLimits limits)
      : api_(api), tasks_(tasks), limits_(limits) {}
  /// Breaks off what is under way.
  ~OutputCopies();

  /// Breaks off all, now and later.
  void stop() { stop_.request_stop(); }

  static CopyPointer begin(const std::string& task, const kube::ObjectPath& pod);
  /// Copies what it writes from now on, on a thread of its own, where there is one left.
  void follow(const CopyPointer& copy);
  /// Blocks until all is there that the container has written, which has ended. Fine when nobody knows the
  /// pod any more.
  Status finish(const CopyPointer& copy);
  static void break_off(const CopyPointer& copy);

 private:
  Status copy(const Copy& copy, bool follow, const std::stop_token& stop);
  void has_ended(Copy& copy);

  kube::Api& api_;
  const Directory& tasks_;
  const OutputLimits limits_;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::size_t followed_ = 0;
  std::stop_source stop_;
};

}  // namespace drover::pods

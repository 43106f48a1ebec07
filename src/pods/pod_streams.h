#pragma once

// What pods write and read. Their logs are copied (log_copy.h): while they are written, of so many at once,
// and the rest at the end. Those that read are joined to who writes to them (attachment.h), and what they
// write on a terminal comes that way too. Thread safe.

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "base/files.h"
#include "base/result.h"
#include "kube/client/api.h"
#include "kube/client/config.h"
#include "pods/attachment.h"

namespace drover::pods {

struct StreamLimits {
  std::size_t followed = 256;                    ///< others are copied at their end
  std::chrono::milliseconds last_words{20'000};  ///< how long what was written last may take to come
};

class PodStreams {
 public:
  /// Of one pod.
  class Stream;
  using StreamPointer = std::shared_ptr<Stream>;

  /// `tasks`: the folder with a folder for each task; outlives this, as `api` does. `server`: the same one;
  /// without it nobody is joined. `log` may be empty.
  PodStreams(kube::Api& api, std::optional<kube::ServerConfig> server, const Directory& tasks,
             StreamLimits limits, std::function<void(const std::string& line)> log)
      : api_(api), server_(std::move(server)), tasks_(tasks), limits_(limits), log_(std::move(log)) {}
  /// Breaks off what is under way.
  ~PodStreams();

  /// Breaks off all, now and later.
  void stop() { stop_.request_stop(); }

  // One thread's at a time, for one stream:
  /// `reads`: of one that reads what people write.
  static StreamPointer begin(const std::string& task, const kube::ObjectPath& pod,
                             std::optional<PodInput> reads);
  /// The container runs: takes what it writes from now on, on a thread of its own where there is one left,
  /// and lets people write to it.
  void follow(const StreamPointer& stream);
  /// Blocks until all is there that the container has written, which has ended. Fine when nobody knows the
  /// pod any more.
  Status finish(const StreamPointer& stream);
  static void break_off(const StreamPointer& stream);

 private:
  void join(Stream& stream);
  void follow_log(const StreamPointer& stream);
  Status finish_log(const StreamPointer& stream);
  Status copy(const Stream& stream, bool follow, const std::stop_token& stop);
  void has_ended(Stream& stream);

  kube::Api& api_;
  const std::optional<kube::ServerConfig> server_;
  const Directory& tasks_;
  const StreamLimits limits_;
  const std::function<void(const std::string&)> log_;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::size_t followed_ = 0;
  std::stop_source stop_;
};

}  // namespace drover::pods

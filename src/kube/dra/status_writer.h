#pragma once

// Keeps the status of claims saying what device_status.h says of them: on a thread of its own, so that no
// claim waits for it. What cannot be written is told once, and tried again, later each time. Thread safe.

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <thread>

#include "base/pause.h"
#include "kube/dra/claim.h"
#include "kube/dra/device_status.h"
#include "kube/dra/preparer.h"

namespace drover::kube::dra {

struct StatusWriterOptions {
  StatusOwner owner;
  std::shared_ptr<ClaimSource> source;
  /// The entries of the claim with this uid now; none when it is not prepared. Does not block.
  std::function<nlohmann::json(const std::string& uid)> entries;
  std::function<void(const std::string& sentence)> warn;     ///< may be absent
  std::chrono::milliseconds retry{std::chrono::seconds(5)};  ///< doubled each time, up to
  std::chrono::milliseconds patience{std::chrono::minutes(10)};
};

class StatusWriter {
 public:
  explicit StatusWriter(StatusWriterOptions options);
  StatusWriter(const StatusWriter&) = delete;
  StatusWriter& operator=(const StatusWriter&) = delete;
  /// Waits for the call that is under way. What is written stays.
  ~StatusWriter() = default;

  // None of these blocks.
  void prepared(const ClaimReference& claim);
  void unprepared(const std::string& uid);

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    ClaimReference claim;
    std::optional<Clock::time_point> due = {};  ///< none: its status says what it should
    Backoff pauses;                             ///< after failures
    bool written = false;                       ///< something may stand there
  };

  void run(const std::stop_token& stop);
  std::optional<ClaimReference> next(std::unique_lock<std::mutex>& lock, const std::stop_token& stop);
  void done(const ClaimReference& claim, const Status& written, bool is_empty);
  Status write(const ClaimReference& claim, const nlohmann::json& entries) const;

  const StatusWriterOptions options_;
  std::optional<ErrorKind> told_;  ///< of the thread alone
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::map<std::string, Entry> claims_;  ///< by uid: those that are prepared, and those still to be written
  std::jthread thread_;
};

}  // namespace drover::kube::dra

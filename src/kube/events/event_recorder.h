#pragma once

// Writes Events (core v1, which `kubectl describe` shows) on a thread of its own. Thread safe.

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "kube/client/api.h"
#include "kube/events/event_book.h"

namespace drover::kube {

struct EventSource {
  std::string component = "drover";
  std::string host;  ///< the node
};

/// While something else is to be written that matters more, Events are few.
struct StandBack {
  std::function<bool()> is_busy = {};      ///< asked on the recorder's thread
  std::chrono::milliseconds between{250};  ///< one Event and the next one, as long as that is so
};

class EventRecorder {
 public:
  /// `api` must outlive it. `on_trouble` hears, on the recorder's thread, why Events could not be written,
  /// once for each reason.
  EventRecorder(Api& api, EventSource source, std::function<void(const Error&)> on_trouble = {},
                EventLimits limits = {}, StandBack stand_back = {});
  EventRecorder(const EventRecorder&) = delete;
  EventRecorder& operator=(const EventRecorder&) = delete;
  /// What was not written by now is not written any more.
  ~EventRecorder();

  /// Does not block, and cannot fail.
  void record(const EventTarget& target, const EventText& text);

 private:
  void run(const std::stop_token& stop);
  bool is_to_wait();
  /// The name under which it stands now.
  Result<std::string> write(const EventWrite& write, const std::stop_token& stop);
  Result<std::string> make(const EventWrite& write, const std::stop_token& stop);

  Api& api_;
  const EventSource source_;
  const std::function<void(const Error&)> on_trouble_;
  const StandBack stand_back_;
  std::optional<std::chrono::steady_clock::time_point> waits_since_;  ///< of the thread alone
  std::string trouble_;                                               ///< told last; of the thread alone
  std::mutex mutex_;
  std::condition_variable_any changed_;
  EventBook book_;
  bool added_ = false;  ///< since the thread looked
  std::jthread thread_;
};

}  // namespace drover::kube

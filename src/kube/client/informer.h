#pragma once

// Keeps what stands in the API server at hand: lists objects once, then follows their changes on a thread of
// its own. Where the connection breaks it goes on after what it saw last; where the server has forgotten
// that, it lists again and tells the difference. Thread safe.
//
//   Informer pods(api, {.selection = {kPods, "", "", "spec.nodeName=gpu-1"}, .on_change = wake});
//   DROVER_CHECK_OK(pods.wait_until_listed(30s));

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>

#include "base/pause.h"
#include "kube/client/api.h"

namespace drover::kube {

struct Change {
  Object before;  ///< null of what is new
  Object now;     ///< null of what is gone
};

struct InformerOptions {
  Selection selection;
  /// Called on the informer's thread, after objects() has it; also for what the first list has.
  std::function<void(const Change&)> on_change = {};
  /// Once for each trouble until it is over; it tries again by itself.
  std::function<void(const Error&)> on_trouble = {};
  std::chrono::milliseconds first_pause{200};
  std::chrono::milliseconds longest_pause{30'000};
  std::uint32_t seed = std::random_device()();
};

class Informer {
 public:
  /// Begins at once. `api` must outlive it.
  Informer(Api& api, InformerOptions options);
  Informer(const Informer&) = delete;
  Informer& operator=(const Informer&) = delete;
  /// Ends within a second, when the callbacks return.
  ~Informer();

  /// Until objects() is complete for the first time; else kTimeout, with the last trouble.
  Status wait_until_listed(std::chrono::milliseconds patience) const;
  /// By key: "namespace/name". What was there at some time, not long ago.
  std::map<std::string, Object> objects() const;
  /// Null when it is not there.
  Object find(const std::string& key) const;

 private:
  void run(const std::stop_token& stop);
  /// One list, where it is needed, and one watch; whether the watch was of use.
  Result<bool> follow(const std::stop_token& stop);
  void take_all(const ObjectList& list);
  void take(const WatchEvent& event);
  void notify(const Change& change) const;
  void note(const Status& outcome);

  Api& api_;
  const InformerOptions options_;
  std::string version_;  ///< seen last; "": list again. Of the thread alone
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::map<std::string, Object> objects_;
  bool listed_ = false;
  std::optional<Error> trouble_;
  std::jthread thread_;
};

}  // namespace drover::kube

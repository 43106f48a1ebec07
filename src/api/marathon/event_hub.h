#pragma once

// Marathon's events: what decisions tell, made into text once for all who follow. Each follower has a queue
// of shared texts with an end: who does not read is cut off. Used on the control strand.

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/daemon.h"

namespace drover::api::marathon_v2 {

/// One event as it goes over the wire.
struct WireEvent {
  std::string type;
  std::optional<uid_t> owner;  ///< who may hear of it besides root; none: everybody
  std::shared_ptr<const std::string> text;
};

/// One who listens.
class Follower {
 public:
  /// `types`: only these; all when it is empty. `wake` is called when there is something to take.
  Follower(const engine::Caller& caller, std::set<std::string> types, std::function<void()> wake);

  void offer(const WireEvent& event);
  /// The next text; null when there is none.
  std::shared_ptr<const std::string> take();
  /// It reads too slowly: what it missed cannot be had again.
  bool cut() const { return cut_; }

 private:
  bool is_root_;
  uid_t uid_;
  std::set<std::string> types_;
  std::function<void()> wake_;
  std::deque<std::shared_ptr<const std::string>> waiting_;
  std::size_t bytes_ = 0;
  bool cut_ = false;
};

inline constexpr std::size_t kMostWaitingEvents = 10'000;
inline constexpr std::size_t kMostWaitingBytes = 8U << 20;

class EventHub {
 public:
  explicit EventHub(engine::Daemon& daemon) : daemon_(daemon) {}

  /// Until the handle dies. The first event that it gets is that it is attached.
  std::shared_ptr<Follower> follow(const engine::Caller& caller, std::set<std::string> types,
                                   std::function<void()> wake);
  /// An app was changed through the API.
  void tell_post(uid_t caller, const workload::Service& service);
  /// Somebody's stream has ended.
  void tell_detached();

 private:
  void tell(const control::Notice& notice);
  void tell(const std::vector<WireEvent>& events);
  bool anybody();

  engine::Daemon& daemon_;
  std::vector<std::weak_ptr<Follower>> followers_;
  std::shared_ptr<void> watch_;  ///< while somebody follows
};

}  // namespace drover::api::marathon_v2

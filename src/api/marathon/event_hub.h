#pragma once

// Marathon's events: what decisions tell, made into text once and kept once for all who follow, until all
// have taken it. A follower is a place in that log, so a thousand of them cost little, and one who does not
// read costs no more: the log has an end, and who is left behind by it is cut off. Used on the control
// strand.

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

#include "engine/api.h"

namespace drover::api::marathon_v2 {

/// One event as it goes over the wire.
struct WireEvent {
  std::string type;
  std::optional<uid_t> owner;  ///< who may hear of it besides root; none: everybody
  std::string text;
};

/// What has been told lately. Numbers count from the first event that was ever told.
class EventLog {
 public:
  void add(WireEvent event);
  /// Nobody needs those before this number any more.
  void forget_before(std::uint64_t number);

  const WireEvent& at(std::uint64_t number) const { return events_[number - begin_]; }
  std::uint64_t begin() const { return begin_; }  ///< of the oldest that is kept
  std::uint64_t end() const { return begin_ + events_.size(); }

 private:
  void drop_oldest();

  std::deque<WireEvent> events_;
  std::uint64_t begin_ = 0;
  std::size_t bytes_ = 0;
};

/// Enough for the start of ten thousand instances at once.
inline constexpr std::size_t kMostWaitingEvents = 50'000;
inline constexpr std::size_t kMostWaitingBytes = 32U << 20;

/// One who listens.
class Follower {
 public:
  /// Hears of what is told from now on. `types`: only these; all when it is empty. `wake` is called when
  /// there is something to take. The log outlives it.
  Follower(const EventLog& log, const engine::Caller& caller, std::set<std::string> types,
           std::function<void()> wake);

  /// For it alone, before all others.
  void greet(const WireEvent& event);
  /// The log has this one more.
  void on_event(std::uint64_t number);
  /// The next texts, one behind the other, as many as begin within so many bytes; "" when there are none.
  std::string take(std::size_t bytes);
  /// It reads too slowly: what it missed cannot be had again.
  bool cut() const { return next_ < log_.begin(); }
  /// Of the first event that it has not taken.
  std::uint64_t next() const { return next_; }

 private:
  bool wants(const WireEvent& event) const;

  const EventLog& log_;
  bool is_root_;
  uid_t uid_;
  std::set<std::string> types_;
  std::function<void()> wake_;
  std::string greeting_;
  std::uint64_t next_;
};

class EventHub {
 public:
  explicit EventHub(engine::Api& daemon) : daemon_(daemon) {}
  /// The machine's.
  void set_ip(std::string ip) { ip_ = std::move(ip); }

  /// Until the handle dies. The first event that it gets is that it is attached.
  std::shared_ptr<Follower> follow(const engine::Caller& caller, std::set<std::string> types,
                                   std::function<void()> wake);
  /// Apps that somebody posts.
  struct Post {
    uid_t caller = 0;
    std::string app;  ///< one of them
    TimePoint version{};
  };
  /// When the change of definitions comes that they are, it is told that they were posted, before all that
  /// comes of it. Until the handle dies.
  [[nodiscard]] std::shared_ptr<void> expect(Post post);
  /// A change of these apps and groups was refused.
  void publish_failed(uid_t caller, const std::vector<std::string>& ids, const std::string& why);
  /// Somebody's stream has ended.
  void publish_detached();
  /// Nobody is told anything any more, and the daemon may go.
  void stop();

 private:
  void publish(const control::Notice& notice);
  void publish_post(const control::notice::DefinitionsChanged& changed);
  void publish(std::vector<WireEvent> events);
  bool anybody();

  engine::Api& daemon_;
  std::string ip_;
  EventLog log_;
  std::vector<std::weak_ptr<Follower>> followers_;
  std::shared_ptr<void> watch_;  ///< while somebody follows
  std::vector<std::weak_ptr<Post>> expected_;
};

}  // namespace drover::api::marathon_v2

#pragma once

// Which Kubernetes Events are written, and when: what happens again is counted in the Event that is there,
// and whoever has much to say of one object is slowed down, so that a GPU which comes and goes cannot flood
// the API server. Pure; not thread safe.

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "base/units.h"

namespace drover::kube {

/// What an Event is about.
struct EventTarget {
  std::string api_version = "v1";
  std::string kind;             ///< "Pod", "Node"
  std::string name_space = {};  ///< "" for nodes
  std::string name;
  std::string uid = {};  ///< "": of nodes their name, as the kubelet does

  auto operator<=>(const EventTarget&) const = default;
};

struct EventText {
  bool warning = false;
  std::string reason;   ///< for programs, one word: "GpuUnhealthy"
  std::string message;  ///< for people, a sentence

  auto operator<=>(const EventText&) const = default;
};

struct EventLimits {
  std::chrono::milliseconds again{std::chrono::seconds(10)};  ///< at least, between writes of one Event
  std::chrono::milliseconds fresh{std::chrono::minutes(10)};  ///< after so long it is a new Event
  int burst = 25;                                             ///< Events of one object at once; later
  std::chrono::milliseconds refill{std::chrono::minutes(1)};  ///< one each so often, as in client-go
  std::size_t most = 1000;                                    ///< that are known, or wait, at a time
  int tries = 12;                                             ///< to write one, as in client-go
};

/// One Event as it is to stand in the API server.
struct EventWrite {
  EventTarget target;
  EventText text;
  int count = 1;
  TimePoint first;
  TimePoint last;
  std::string name;  ///< of the Event that is there; "": make one
};

class EventBook {
 public:
  explicit EventBook(EventLimits limits = {}) : limits_(limits) {}

  /// Something has happened.
  void add(const EventTarget& target, const EventText& text, TimePoint now);
  /// What is to be written now; call wrote() or failed() before the next one.
  std::optional<EventWrite> next(TimePoint now);
  /// It stands there under this name.
  void wrote(const EventWrite& write, const std::string& name, TimePoint now);
  /// It could not be written. When that `may_pass` it is tried again; otherwise, and after the last try, it
  /// is dropped unless it happened again.
  void failed(const EventWrite& write, bool may_pass, TimePoint now);
  /// When next() has something; none: when something is added.
  std::optional<TimePoint> due() const;
  /// What was not written, because there was too much.
  std::uint64_t dropped() const { return dropped_; }

 private:
  using Key = std::tuple<EventTarget, EventText>;
  struct Turn {
    TimePoint when;
    std::uint64_t number = 0;  ///< in the order in which they came

    auto operator<=>(const Turn&) const = default;
  };
  struct Entry {
    int count = 0;
    TimePoint first;
    TimePoint last;
    std::string name;
    bool pending = false;
    int failures = 0;  ///< since it was written
    TimePoint not_before;
    Turn place;  ///< in its line
  };
  using Entries = std::map<Key, Entry>;
  using Line = std::map<Turn, Entries::iterator>;
  struct Bucket {
    int tokens = 0;
    TimePoint refilled;
  };

  bool may_begin(const EventTarget& target, TimePoint now);
  void forget_old(TimePoint now);
  Line& line_of(const Entry& entry) { return entry.pending ? pending_ : written_; }
  void line_up(Entries::iterator entry);
  void leave_line(Entries::iterator entry);
  void forget(Entries::iterator entry);

  EventLimits limits_;
  Entries entries_;
  Line pending_;  ///< by when they may be written
  Line written_;  ///< by when they happened last: of what is new again when it happens again
  std::map<EventTarget, Bucket> buckets_;
  TimePoint looked_{};       ///< for what is old
  std::uint64_t turns_ = 0;  ///< that were given out
  std::uint64_t dropped_ = 0;
};

}  // namespace drover::kube

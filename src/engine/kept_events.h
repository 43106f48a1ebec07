#pragma once

// The events that the journal keeps: reads pieces of them for who asks for more than the feed has, and
// removes those that are too old or too many. Both are done in small steps between commits, which wait for
// one step at most; users take turns with what they read. Owned by the control strand.

#include <deque>
#include <map>

#include "base/log_once.h"
#include "engine/event_loop.h"
#include "engine/event_query.h"

namespace drover::engine {

class KeptEvents {
 public:
  /// Both outlive this and what it has on the journal's thread.
  KeptEvents(const Ports& ports, EventLoop& loop)
      : limits_(ports.events), ports_(ports), loop_(loop), trouble_(ports.log) {}

  /// Counts those up to the number `last`.
  void start(std::uint64_t last);
  /// There are more. On a full disk the oldest make way for them, so that the journal need not grow: what is
  /// left of the disk is for what ends tasks.
  void added(const std::vector<EventView>& events, bool disk_is_full);
  /// `last`: the number that was told last.
  void read(const Caller& caller, const EventQuery& query, EventOrder order, std::uint64_t last,
            EventPageTaker done);
  /// Whoever waits for his turn gets this.
  void refuse(const Error& error);
  /// Removes what is too old. To be called now and then.
  void tidy();

 private:
  struct Reading {
    Caller caller;
    EventQuery query;
    EventOrder order;
    std::uint64_t last;
    EventPageTaker done;
  };
  using Remove = std::function<Result<store::EventCounts>(store::Journal&)>;

  static Result<EventPage> page_of(const store::Journal& journal, const Reading& reading);
  void read_next();
  void count();
  void count_after(std::uint64_t number, std::uint64_t last);
  std::size_t piece() const;
  void trim();
  void remove_before(TimePoint steady);
  /// And goes on with `then`, unless it failed.
  void remove(Remove remove, std::function<void(std::size_t removed)> then);

  const EventLimits limits_;
  const Ports& ports_;
  EventLoop& loop_;
  LogOnce trouble_;
  std::map<uid_t, std::deque<Reading>> waiting_;
  uid_t turn_ = 0;  ///< whose it was last
  bool reading_ = false;
  std::uint64_t last_ = 0;  ///< that was added
  store::EventCounts counts_;
  std::size_t total_ = 0;
  bool counted_ = false;  ///< else those of earlier lives are still being counted
  bool removing_ = false;
  std::size_t room_ = 0;  ///< of events that made way on a full disk: so many have not been added since
};

}  // namespace drover::engine

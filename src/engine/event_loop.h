#pragma once

// How events come to count. They are decided in transactions, one after the other, and what was decided is
// the state when it is on the disk, not before. The journal is written on a thread of its own, so that a slow
// disk holds up changes and nothing else; what comes meanwhile is decided and written together afterwards.
// Owned by the control strand.

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log_once.h"
#include "control/event.h"
#include "control/state.h"
#include "engine/ports.h"
#include "metrics/histogram.h"
#include "store/journal.h"

namespace drover::engine {

/// Whom the loop tells.
struct EventHooks {
  /// An event is about to be decided.
  std::function<void(const control::Event&)> before;
  /// What was decided is broken (Outcome::broken): nothing of it is done.
  std::function<void(const Error&)> broken;
  /// What an event came to counts from now on.
  std::function<void(const control::Outcome&, bool is_tick)> counts;
  /// What people are to be told of it; without numbers.
  std::function<std::vector<store::Event>(const control::Outcome&)> events;
  /// That counts, too, and they may be told now.
  std::function<void(std::vector<store::Event>)> told;
  /// This cannot be kept now. What it ends may be what fills the disk: it is ended first.
  std::function<void(const control::event::StopRequested&)> end_first;
};

class EventLoop {
 public:
  /// `state` is what the journal holds, and is changed by this alone. Outlives this, as `ports` does.
  EventLoop(const Ports& ports, store::Journal journal, control::State& state, EventHooks hooks);

  /// With all that is decided until now, within a transaction.
  const control::State& state() const {
    settle();
    return state_;
  }
  /// Decisions::transact().
  void transact(Work run, std::function<void(Status kept)> done);
  /// Decisions::rehearse().
  void rehearse(control::State& draft, const Work& run);
  /// Decisions::change(): within a transaction.
  Result<control::Made> change(const control::Event& event);
  /// Within a transaction: what is kept nowhere, and counts with the rest.
  void note(control::Outcome outcome);
  /// Within a transaction: `work` is done when it counts.
  void then(Work work);
  /// Actions::happened().
  void happened(control::Event event);

  /// Before it the strand waits for the journal.
  void serve() { on_thread_ = true; }
  /// Refuses what waits for a disk that does not answer. To be called now and then: Loop::wake_at.
  void tick();
  /// Lets go of what waits for its turn.
  void stop() { queue_.clear(); }

  /// Runs `work` where the journal may be used, and what that returns on the strand.
  void on_journal(std::function<Work(store::Journal&)> work);
  /// The next commit removes the key besides.
  void remove_with_next(std::string key) { leftovers_.push_back(std::move(key)); }

  /// The number of the event that was decided last.
  std::uint64_t last_event() const { return last_event_; }

  /// That the disk has not answered for a while.
  std::optional<Error> silence() const;
  /// How many events that have happened could not be kept yet.
  std::size_t unsaved() const { return unsaved_.size(); }
  /// How long commits take.
  const metrics::Histogram& commits() const { return commits_; }

 private:
  /// A transaction, or an event that has happened.
  struct Part {
    Work run;
    std::function<void(Status)> done;
    std::optional<control::Event> event;
    bool again = false;        ///< it is the first of `unsaved_`
    bool alone = false;        ///< together with others it could not be kept
    std::size_t outcomes = 0;  ///< in its batch
    std::vector<control::event::StopRequested> stops;
    std::vector<Work> then;
  };
  /// What is decided, and then written, at once.
  struct Batch {
    std::vector<Part> parts;
    std::vector<control::Outcome> outcomes;  ///< of the first part, then of the second, …
    std::vector<store::Event> events;        ///< that the outcomes come to
    std::vector<store::Allocation> ended;    ///< by them
    std::vector<bool> ticks;                 ///< by outcome: whether it is that of a Tick
    std::size_t leftovers = 0;               ///< so many of `leftovers_` go with it
    std::size_t settled = 0;                 ///< so many of the outcomes are in the state, for who follows
    bool counts = true;                      ///< else it is rehearsed, and nobody is told of it
    /// The state without them while more is decided, and with them afterwards; none when there are none.
    std::optional<control::State> other;
  };

  void go_on();
  std::shared_ptr<Batch> gather();
  void decide(Part part);
  /// A copy of the state costs something, so nothing is applied to one before somebody looks.
  void settle() const;
  void take(control::Outcome outcome, bool is_tick);
  void write(const std::shared_ptr<Batch>& batch);
  void number_events(Batch& batch);
  void watch();
  /// On its own thread; else the strand waits for the journal.
  bool writes_beside() const { return on_thread_ && ports_.journal; }
  void finish(Batch& batch, const Status& kept);
  void accept(Batch& batch);
  void undo(Batch& batch, const Error& error);
  void give_up(Part part, const Error& error);
  void wait(control::Event event);
  void retry();

  const Ports& ports_;
  const std::shared_ptr<store::Journal> journal_;
  control::State& state_;
  const EventHooks hooks_;
  metrics::Histogram commits_{metrics::kDurations};
  std::uint64_t last_event_;

  std::deque<Part> queue_;
  Batch* open_ = nullptr;  ///< the one that is being decided
  bool busy_ = false;      ///< with deciding, writing, or what follows
  bool on_thread_ = false;
  std::optional<TimePoint> writing_since_;
  TimePoint watched_until_{};
  std::vector<std::string> leftovers_;
  /// What has happened and could not be kept, in order: nothing that has happened overtakes it.
  std::deque<control::Event> unsaved_;
  bool retrying_ = false;  ///< the first of them is on its way
  LogOnce unsaved_trouble_;
};

}  // namespace drover::engine

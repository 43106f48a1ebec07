#pragma once

// The last some thousand events, so that nobody who follows them needs the journal, and who listens for more.
// Owned by the control strand.

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "engine/event_query.h"
#include "engine/listeners.h"

namespace drover::engine {

class Feed {
 public:
  /// `last`: the number that was given last.
  explicit Feed(std::uint64_t last) : last_(last), dropped_(last) {}

  /// In the order of their numbers, which are greater than all before.
  void add(std::vector<EventView> events);
  /// Whether all that came after this number are here.
  bool has_after(std::uint64_t number) const { return number >= dropped_; }
  /// Of those, oldest first.
  EventPage page(const Caller& caller, const EventQuery& query) const;
  std::uint64_t last() const { return last_; }
  std::shared_ptr<void> subscribe(std::function<void()> listener) {
    return listeners_.add(std::move(listener));
  }

 private:
  std::uint64_t last_;
  std::uint64_t dropped_;  ///< up to this number none is here
  std::deque<EventView> kept_;
  Listeners<> listeners_;
};

}  // namespace drover::engine

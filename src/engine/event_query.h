#pragma once

// Which events somebody asks for, and what he gets of them at once. Values; pure.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/task_list.h"
#include "store/event.h"

namespace drover::engine {

/// One thing that happened.
using EventView = store::Event;

struct EventQuery {
  std::uint64_t after = 0;                           ///< only greater numbers
  std::uint64_t before = store::EventRange::kNoEnd;  ///< only smaller ones
  std::vector<std::string> kinds;                    ///< one of them; none: any
  /// Of the tasks that it may mean: an id, its first kShortestBeginning characters or more, a name, or what
  /// the task is a part of. "": any.
  std::string task;
  std::string user;  ///< of tasks that run as this one; "": any
  std::optional<TimePoint> since, until;

  static constexpr std::size_t kShortestBeginning = 4;

  /// Whether it asks for this one, by whatever but its number.
  bool takes(const EventView& event) const;
};

/// Everybody hears of his own tasks and of the machine.
bool may_hear(const Caller& caller, const EventView& event);

enum class EventOrder { kOldestFirst, kNewestFirst };

/// A piece of what is asked for.
struct EventPage {
  std::vector<EventView> events;
  std::uint64_t reached = 0;  ///< no number between the beginning and this one is left out
  bool end = false;           ///< there are no more now

  /// As much as one who reads slowly may hold. Takes the event when it is asked for; false: the page is full.
  bool add(const Caller& caller, const EventQuery& query, const EventView& event);

 private:
  std::size_t bytes_ = 0;
};

using EventPageTaker = std::function<void(Result<EventPage>)>;

}  // namespace drover::engine

#pragma once

// What people are told has happened, as the journal keeps it. Values.

#include <cstdint>
#include <limits>
#include <map>
#include <string>

#include "base/units.h"

namespace drover::store {

struct Event {
  static constexpr std::int64_t kEverybody = -1;

  std::uint64_t number = 0;  ///< only grows, also over restarts
  TimePoint at{};
  TimePoint steady{};               ///< the same by the clock that nobody sets: by it events grow old
  std::string kind;                 ///< workload/event_kinds.h
  std::int64_t owner = kEverybody;  ///< the user who may hear of it besides root
  std::string task_id;              ///< "" when it concerns no task; then the next three are empty, too
  std::string name;                 ///< of the task
  std::string user;                 ///< that the task runs as
  std::string part_of;              ///< id of its gang or array, or the app or job that it was made for
  std::string message;
  std::string facts;  ///< what else the API tells of it: a JSON object; "" for nothing
};

/// A part of the events, in their order or against it.
struct EventRange {
  static constexpr auto kNoEnd = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

  std::uint64_t after = 0;        ///< only greater numbers
  std::uint64_t before = kNoEnd;  ///< only smaller ones
  bool newest_first = false;
};

/// By owner.
using EventCounts = std::map<std::int64_t, std::size_t>;

}  // namespace drover::store

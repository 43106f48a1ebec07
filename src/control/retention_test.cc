#include "control/retention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "control/testing/machine.h"

namespace drover::control {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::kNow;
using testing::Machine;
using testing::task_of;

/// Tasks of two users, of which each ended a minute after the one before; the last one runs.
struct Used : Machine {
  Used() : Machine(8) {
    auto now = kNow;
    for (const auto* id : {"a1", "b1", "a2", "b2", "a3"}) {
      now += 1min;
      (void)on(event::Submitted{{task_of(id, id[0] == 'a' ? 1000 : 1001, id, 1)}}, now);
      (void)on(event::Ended{id, testing::exited(0)}, now);
    }
    (void)submit(task_of("b3", 1001, "b3", 1));
  }
  std::vector<std::string> forget(std::uint64_t wanted, std::map<std::string, std::uint64_t> bytes,
                                  TimePoint at = kNow + 1h) const {
    return tasks_to_forget(state, bytes, wanted, at);
  }
};

TEST(Retention, TheOldestOfWhoeverTakesMostGoFirst) {
  const Used used;
  const std::map<std::string, std::uint64_t> bytes = {
      {"a1", 10}, {"a2", 30}, {"a3", 5}, {"b1", 20}, {"b2", 10}};
  EXPECT_THAT(used.forget(0, bytes), IsEmpty());
  EXPECT_THAT(used.forget(1, bytes), ElementsAre("a1"));
  EXPECT_THAT(used.forget(11, bytes), ElementsAre("a1", "a2"));
  EXPECT_THAT(used.forget(41, bytes), ElementsAre("a1", "a2", "b1"));
  EXPECT_THAT(used.forget(1000, bytes), ElementsAre("a1", "a2", "b1", "b2", "a3"));
}

TEST(Retention, WhatRunsCountsAndStays) {
  const Used used;
  EXPECT_THAT(used.forget(1, {{"a1", 10}, {"b1", 1}, {"b3", 50}}), ElementsAre("b1"));
  EXPECT_THAT(used.forget(100, {{"b3", 50}}), IsEmpty());
}

TEST(Retention, WhatEndedJustNowStaysToBeRead) {
  const Used used;
  const std::map<std::string, std::uint64_t> bytes = {{"a1", 10}, {"a2", 30}, {"a3", 5}};
  EXPECT_THAT(used.forget(100, bytes, kNow + 10min), IsEmpty());
  EXPECT_THAT(used.forget(100, bytes, kNow + 13min), ElementsAre("a1", "a2"));
}

TEST(Retention, WhatTakesUpNothingStays) {
  const Used used;
  EXPECT_THAT(used.forget(100, {{"a2", 30}, {"a1", 0}, {"gone", 7}}), ElementsAre("a2"));
}

RC_GTEST_PROP(Retention, OfEventsThoseGoWhoHaveMost, ()) {
  const auto counts = *rc::gen::container<std::map<std::int64_t, std::size_t>>(
      rc::gen::inRange<std::int64_t>(-1, 6), rc::gen::inRange<std::size_t>(0, 200));
  const auto most = *rc::gen::inRange<std::size_t>(0, 400);
  const auto lost = events_to_forget(counts, most);
  std::size_t all = 0, left = 0, least_of_losers = SIZE_MAX, most_of_all = 0;
  for (const auto& [owner, count] : counts) {
    const auto entry = lost.find(owner);
    const auto kept = count - (entry == lost.end() ? 0 : entry->second);
    all += count;
    left += kept;
    most_of_all = std::max(most_of_all, kept);
    if (entry != lost.end()) least_of_losers = std::min(least_of_losers, kept);
  }
  RC_ASSERT(left <= most);
  RC_ASSERT(lost.empty() == (all <= most));
  RC_ASSERT(lost.empty() || left + lost.size() > most);
  RC_ASSERT(lost.empty() || least_of_losers == most_of_all);
}

}  // namespace
}  // namespace drover::control

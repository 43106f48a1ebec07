#include "engine/event_query.h"

#include <gtest/gtest.h>

#include "engine/feed.h"

namespace drover::engine {
namespace {

using namespace std::chrono_literals;

const Caller kRoot, kAnn{{1001, 1001, {}, "ann", "/"}};

EventView event_of_ann(std::uint64_t number = 1) {
  EventView event;
  event.number = number;
  event.at = TimePoint(100s);
  event.kind = "task_running";
  event.owner = 1001;
  event.task_id = "5f0c8e21a7b4";
  event.name = "train";
  event.user = "ann";
  event.part_of = "/shop/web";
  return event;
}

TEST(EventQuery, TakesWhatAllOfItSays) {
  const auto event = event_of_ann();
  EXPECT_TRUE(EventQuery{}.takes(event));
  EXPECT_TRUE((EventQuery{.kinds = {"task_lost", "task_running"}}.takes(event)));
  EXPECT_FALSE((EventQuery{.kinds = {"task_lost"}}.takes(event)));
  EXPECT_TRUE((EventQuery{.since = TimePoint(100s), .until = TimePoint(100s)}.takes(event)));
  EXPECT_FALSE(EventQuery{.since = TimePoint(101s)}.takes(event));
  EXPECT_FALSE(EventQuery{.until = TimePoint(99s)}.takes(event));
  EXPECT_TRUE(EventQuery{.user = "ann"}.takes(event));
  EXPECT_FALSE(EventQuery{.user = "an"}.takes(event));
  EXPECT_FALSE((EventQuery{.task = "train", .user = "bob"}.takes(event)));
}

TEST(EventQuery, ATaskIsMeantByIdBeginningNameOrWhole) {
  const auto event = event_of_ann();
  for (const auto* word : {"5f0c8e21a7b4", "5f0c", "train", "/shop/web"})
    EXPECT_TRUE(EventQuery{.task = word}.takes(event)) << word;
  for (const auto* word : {"5f0", "trai", "/shop", "0c8e", "5f0c8e21a7b45"})
    EXPECT_FALSE(EventQuery{.task = word}.takes(event)) << word;
  EXPECT_FALSE(EventQuery{.task = "train"}.takes(EventView{})) << "no task's";
}

TEST(EventQuery, OthersAreNotHeardOf) {
  EXPECT_TRUE(may_hear(kRoot, event_of_ann()));
  EXPECT_TRUE(may_hear(kAnn, event_of_ann()));
  EXPECT_FALSE(may_hear({{1002, 1002, {}, "bob", "/"}}, event_of_ann()));
  EXPECT_TRUE(may_hear({{1002, 1002, {}, "bob", "/"}}, EventView{})) << "the machine is everybody's";
}

TEST(Feed, KeepsTheLastAndSaysWhatItHas) {
  Feed feed(10);
  EXPECT_TRUE(feed.has_after(10));
  EXPECT_FALSE(feed.has_after(9)) << "those are in the journal";
  int heard = 0;
  const auto listening = feed.subscribe([&] { ++heard; });
  std::vector<EventView> events;
  for (std::uint64_t number = 12; number < 5012; ++number) events.push_back(event_of_ann(number));
  feed.add(events);
  EXPECT_EQ(heard, 1);
  EXPECT_FALSE(feed.has_after(10));
  EXPECT_TRUE(feed.has_after(5012 - 4096 - 1));
  EXPECT_FALSE(feed.has_after(5012 - 4096 - 2));
  auto page = feed.page(kAnn, {.after = 5000});
  EXPECT_EQ(page.events.size(), 11u);
  EXPECT_EQ(page.reached, 5011u);
  EXPECT_TRUE(page.end);
  page = feed.page(kAnn, {.after = 4000});
  EXPECT_FALSE(page.end) << "a piece of it";
  EXPECT_EQ(page.events.back().number, page.reached);
  page = feed.page({{1002, 1002, {}, "bob", "/"}}, {.after = 4000, .before = 4500});
  EXPECT_TRUE(page.events.empty());
  EXPECT_EQ(page.reached, 4499u) << "he need not look at them again";
}

}  // namespace
}  // namespace drover::engine

#include "engine/kept_events.h"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include "engine/testing/local_fixture.h"

namespace drover::engine {
namespace {

using namespace std::chrono_literals;
using control::TaskState;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Le;

class KeptEventsTest : public testing::LocalEngineTest {
 protected:
  std::string finished(const Caller& caller, const std::string& name, int status = 0) {
    const auto id = submit_with([&](auto& task) { task.name = name; }, caller)->task.id;
    run();
    engine_->watcher().started(id, {42, now_});
    run();
    now_ += 2s;
    end(id, status);
    return id;
  }
  static std::vector<std::string> lines(const std::vector<EventView>& events) {
    std::vector<std::string> lines;
    for (const auto& event : events) lines.push_back(event.kind + " " + event.name);
    return lines;
  }
  static std::vector<std::uint64_t> numbers(const std::vector<EventView>& events) {
    std::vector<std::uint64_t> numbers;
    for (const auto& event : events) numbers.push_back(event.number);
    return numbers;
  }
  void pass(std::chrono::milliseconds time) {
    now_ += time;
    engine_->tick();
    run();
  }

  const Caller alice_{{1001, 1001, {}, "alice", "/"}}, bob_{{1002, 1002, {}, "bob", "/"}};
};

TEST_F(KeptEventsTest, AreThereAfterARestart) {
  begin();
  const auto id = finished(alice_, "train", 3);
  const auto before = told();
  EXPECT_THAT(lines(before), ElementsAre("task_starting train", "task_running train", "task_failed train"));
  begin();
  EXPECT_EQ(numbers(told()), numbers(before));
  EXPECT_EQ(told().back().message, before.back().message);
  ASSERT_TRUE(remove(id, alice_));
  const auto last = told(alice_).back();
  EXPECT_EQ(last.task_id, id) << "what became of a task that is removed is still known";
  EXPECT_EQ(last.user, "alice");
  EXPECT_THAT(last.facts, HasSubstr(R"("exit_status":3)"));
  EXPECT_THAT(last.facts, HasSubstr(R"("started_at")"));
  finished(bob_, "other");
  EXPECT_EQ(told().size(), 6u);
  EXPECT_THAT(told()[3].number, Gt(before.back().number));
  EXPECT_EQ(told(alice_).size(), 3u) << "nobody hears of others";
}

TEST_F(KeptEventsTest, GoOnBehindAnyNumberWhereverItIsKept) {
  begin();
  for (int i = 0; i < 40; ++i) finished(alice_, "first");
  begin();
  for (int i = 0; i < 40; ++i) finished(bob_, "second");
  const auto all = told();
  ASSERT_EQ(all.size(), 240u);
  for (std::size_t i = 0; i < all.size(); i += 7) {
    const auto rest = numbers(told({}, {.after = all[i].number}));
    EXPECT_TRUE(std::ranges::equal(rest, std::span(all).subspan(i + 1), {}, {}, &EventView::number));
  }
  auto backwards = numbers(told({}, {.before = all[200].number}, EventOrder::kNewestFirst));
  std::ranges::reverse(backwards);
  EXPECT_TRUE(std::ranges::equal(backwards, std::span(all).first(200), {}, {}, &EventView::number));
}

TEST_F(KeptEventsTest, NumbersGrowWhenTheJournalIsLost) {
  begin();
  finished(alice_, "train");
  const auto last = told().back().number;
  lose_journal();
  now_ += 1s;
  begin();
  finished(alice_, "again");
  ASSERT_FALSE(told().empty());
  EXPECT_THAT(told().front().number, Gt(last)) << "who goes on behind the last that he saw misses nothing";
}

TEST_F(KeptEventsTest, WhoHasMostLosesHisOldest) {
  event_limits_.most = 100;
  begin();
  for (int i = 0; i < 5; ++i) finished(bob_, "quiet");
  for (int i = 0; i < 200; ++i) finished(alice_, "flood" + std::to_string(i));
  EXPECT_THAT(told().size(), Le(115u));
  EXPECT_EQ(told(bob_).size(), 15u) << "one user's events push nobody else's out";
  EXPECT_EQ(told(alice_).back().name, "flood199");
  event_limits_.most = 50;
  begin();
  EXPECT_THAT(told().size(), Le(50u)) << "they are counted at a start";
  EXPECT_EQ(told(bob_).size(), 15u);
}

TEST_F(KeptEventsTest, TheOldGoAndTheClockOfTheMachineDoesNotMatter) {
  event_limits_.longest = std::chrono::hours(24);
  begin();
  finished(alice_, "old");
  pass(23h);
  finished(alice_, "young");
  EXPECT_EQ(told().size(), 6u);
  pass(2h);
  EXPECT_THAT(lines(told()), ElementsAre("task_starting young", "task_running young", "task_finished young"));
  begin();
  pass(48h);
  EXPECT_THAT(lines(told()), ElementsAre("task_finished young")) << "the numbers go on behind the last one";
}

TEST_F(KeptEventsTest, OnAFullDiskTheOldestMakeWay) {
  event_limits_.most = 1000;
  begin();
  for (int i = 0; i < 100; ++i) finished(alice_, "before");
  std::vector<std::string> running;
  for (int i = 0; i < 200; ++i) running.push_back(submit(0, alice_)->task.id);
  run();
  const auto most = told().size();
  free_ = 1000;
  for (const auto& id : running) {
    end(id, 0);
    EXPECT_THAT(told().size(), Le(most));
  }
  EXPECT_EQ(told().back().task_id, running.back());
}

TEST_F(KeptEventsTest, WhatIsToldOfTheMachineIsKeptToo) {
  begin();
  auto machine = node(2);
  machine.inventory.devices[1].unhealthy = "it fell off the bus";
  engine_->set_machine(machine);
  run();
  begin();
  ASSERT_EQ(told(bob_).size(), 1u);
  EXPECT_EQ(told(bob_)[0].kind, "gpu_unfit");
  EXPECT_EQ(told(bob_, {.user = "bob"}).size(), 0u);
}

TEST_F(KeptEventsTest, WhatBecomesOfTheGpusOfNodesIsToldWithTheirNames) {
  begin();
  auto known = node(2);
  known.name = "n1";
  engine_->set_nodes({known});
  known.inventory.devices[1].unhealthy = "XID 79";
  auto comes = known;
  comes.name = "n2";
  engine_->set_nodes({known, comes});
  engine_->set_nodes({known, comes});
  known.inventory.devices[1].unhealthy = "";
  engine_->set_nodes({known, comes});
  run();
  std::vector<std::string> kinds;
  for (const auto& event : told(bob_)) {
    kinds.push_back(event.kind);
    EXPECT_THAT(event.message, HasSubstr(" of node n1"));
  }
  EXPECT_THAT(kinds, ElementsAre("gpu_unfit", "gpu_fit"));
}

/// A client that goes on behind what it saw last, whatever becomes of the daemon.
RC_GTEST_FIXTURE_PROP(KeptEventsTest, WhoFollowsOverCrashesSeesAllOnceAndInOrder, ()) {
  world_ = {};
  lose_journal();
  event_limits_.most = 100'000;
  begin();
  std::vector<EventView> seen;
  const auto look = [&] {
    const auto after = seen.empty() ? 0 : seen.back().number;
    std::ranges::move(told({}, {.after = after}), std::back_inserter(seen));
  };
  const int steps = *rc::gen::inRange(1, 40);
  for (int step = 0; step < steps; ++step) {
    now_ += 1s;
    if (*rc::gen::inRange(0, 4) == 0) disk_.die(*rc::gen::inRange(0, 12));
    const auto running = engine_->state().active;
    switch (*rc::gen::inRange(0, 5)) {
      case 0:
      case 1:
        (void)submit(0, *rc::gen::element(alice_, bob_));
        break;
      case 2:
        if (!running.empty()) engine_->watcher().started(*running.begin(), {42, now_});
        break;
      case 3:
        if (!running.empty()) end(*running.begin(), *rc::gen::inRange(0, 2));
        break;
      default:
        engine_->tick();
    }
    if (*rc::gen::arbitrary<bool>() && !disk_.dead()) run();
    if (*rc::gen::arbitrary<bool>() && !disk_.dead()) look();
    if (!disk_.dead()) continue;
    engine_.reset();
    disk_.recover();
    begin();
  }
  disk_.recover();
  now_ += 2s;
  engine_->tick();
  run();
  begin();
  look();
  const auto all = told();
  RC_ASSERT(numbers(all) == numbers(seen));
  RC_ASSERT(std::ranges::equal(all, seen, {}, &EventView::message, &EventView::message));
  RC_ASSERT(std::ranges::adjacent_find(all, std::ranges::greater_equal{}, &EventView::number) == all.end());
  for (const auto& [id, record] : control::Rows<control::TaskRecord>(engine_->state().tasks)) {
    const auto last = std::ranges::find(all.rbegin(), all.rend(), id, &EventView::task_id);
    RC_ASSERT(last != all.rend());
    RC_ASSERT(last->kind == "task_" + std::string(control::to_string(record.state)));
  }
}

}  // namespace
}  // namespace drover::engine

#include "placement/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "placement/testing/workplace.h"

namespace drover::placement {
namespace {

using namespace std::chrono_literals;
using namespace placement::testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

Request with_cpus(int gpu_count, std::int64_t milli_cpus) {
  auto request = gpus(gpu_count);
  request.milli_cpus = milli_cpus;
  return request;
}

TEST(Schedule, NamesAllocations) {
  EXPECT_EQ(allocation_id(job("a", gpus(1)), 0), "a");
  EXPECT_EQ(allocation_id(gang("a", 2, gpus(1)), 1), "a/1");
}

TEST(Schedule, StartsWhatFitsInOrderOfPriorityThenArrival) {
  Workplace work(1, 2);
  work.submit(job("late", gpus(1)));
  work.submit(job("urgent", gpus(1), 5));
  work.submit(job("later", gpus(1)));
  const auto plan = work.make_plan();
  EXPECT_THAT(started(plan), ElementsAre("urgent", "late"));
  EXPECT_THAT(plan.order, ElementsAre("urgent", "late", "later"));
  EXPECT_EQ(why(plan, "later"), "1 GPU is wanted and 0 of 2 are free");
}

TEST(Schedule, LeavesTheClusterAsItWas) {
  Workplace work(2, 4);
  work.add(limited("small", 2));
  work.run(job("low", gpus(3), -1));
  work.run(within(1h, job("timed", gpus(2))));
  work.submit(job("big", gpus(4), 3));
  work.submit(gang("gang", 2, gpus(4)));
  work.submit(in("small", job("held", gpus(4))));
  work.submit(within(1min, job("short", gpus(1))));
  const auto free = [&] {
    std::vector<std::int64_t> all;
    for (const auto& name : work.cluster.nodes()) {
      const auto now = work.cluster.free(name);
      all.insert(all.end(),
                 {now.gpus, now.gpu_milli, now.milli_cpus, static_cast<std::int64_t>(now.memory_bytes)});
    }
    return all;
  };
  const auto before = free();
  const auto first = work.make_plan();
  EXPECT_EQ(free(), before);
  const auto second = work.make_plan();
  EXPECT_EQ(first.order, second.order);
  EXPECT_EQ(first.waiting, second.waiting);
  EXPECT_EQ(started(first), started(second));
}

TEST(Schedule, NobodyOvertakesOneWhoWaitsForAllGpusOfTheMachine) {
  Workplace work(1, 8);
  work.run(job("two", gpus(2)));
  work.submit(job("eight", gpus(8)));
  work.submit(job("one", gpus(1)));
  work.submit(within(1h, job("timed", gpus(1))));  // nobody knows when "two" ends
  work.submit(job("no gpu", cpu_only(1000)));
  const auto plan = work.step();
  EXPECT_THAT(started(plan), ElementsAre("no gpu"));
  EXPECT_EQ(why(plan, "timed"), "1 job stands before it; the first waits for 8 GPUs");
  EXPECT_EQ(why(plan, "one"), "2 jobs stand before it; the first waits for 8 GPUs")
      << "it is known to be shorter";
  work.end("two");
  EXPECT_THAT(started(work.step()), ElementsAre("eight"));
}

TEST(Schedule, KeepsTheCpusAndTheMemoryOfOneWhoWaits) {
  Workplace work(1, 2);  // 64 CPUs
  work.run(job("first", with_cpus(2, 8'000)));
  work.submit(job("second", with_cpus(2, 40'000)));
  work.submit(job("much", cpu_only(25'000)));  // free now, and not beside "second"
  work.submit(job("enough", cpu_only(24'000)));
  EXPECT_THAT(started(work.step()), ElementsAre("enough"));
  work.end("first");
  EXPECT_THAT(started(work.step()), ElementsAre("second"));
}

TEST(Schedule, TakesWhatTheOneWhoWaitsDoesNotNeed) {
  Workplace work(2, 4);
  work.run(job("a", gpus(3)));
  work.now += 1min;
  work.run(job("b", gpus(3)));
  work.submit(job("four", gpus(4)));
  work.submit(job("one", gpus(1)));
  work.submit(job("another", gpus(1)));
  const auto plan = work.step();
  EXPECT_THAT(started(plan), ElementsAre("one"));  // on the node that is not kept for "four"
  // "b" is younger, so it is likely to end first: its node is kept.
  EXPECT_EQ(work.running.at("one").decisions[0].node, work.running.at("a").decisions[0].node);
}

TEST(Schedule, FillsTheTimeUntilAReservation) {
  Workplace work(1, 4);
  work.run(within(60min, job("runs", gpus(2))));
  work.submit(job("four", gpus(4)));
  work.submit(within(61min, job("long", gpus(1))));
  work.submit(within(60min, job("short", gpus(2))));
  work.submit(within(60min, job("full", gpus(1))));
  const auto plan = work.step();
  EXPECT_THAT(started(plan), ElementsAre("short"));
  EXPECT_THAT(plan.waiting.at("four").remedies,
              ::testing::Contains("wait for 1h 0m at most: then enough jobs have come to their time limits"));
  work.now += 60min;
  work.end("runs");
  work.end("short");
  EXPECT_THAT(started(work.step()), ElementsAre("four"));
}

TEST(Schedule, SaysWhichTimeLimitWouldHelp) {
  Workplace work(1, 4);
  work.run(within(60min, job("runs", gpus(2))));
  work.submit(job("four", gpus(4)));
  work.submit(job("unlimited", gpus(1)));
  EXPECT_THAT(work.make_plan().waiting.at("unlimited").remedies,
              ::testing::Contains("give it a time limit of at most 1h 0m: then it need not wait"));
}

TEST(Schedule, TheEarliestEndCountsNotTheEmptiestNode) {
  Workplace work(2, 4);
  work.run(within(10min, job("soon", gpus(4))));
  work.run(within(60min, job("late", gpus(1))));
  work.submit(job("four", gpus(4)));
  work.submit(job("rest", gpus(3)));  // beside "late", for "four" gets the node of "soon"
  EXPECT_THAT(started(work.step()), ElementsAre("rest"));
}

TEST(Schedule, GangsAreAllOrNothing) {
  Workplace work(2, 4);
  work.run(job("one", gpus(1)));
  work.submit(gang("gang", 2, gpus(4)));
  EXPECT_THAT(started(work.step()), IsEmpty());
  work.end("one");
  const auto plan = work.step();
  ASSERT_THAT(started(plan), ElementsAre("gang"));
  EXPECT_EQ(plan.starts[0].decisions.size(), 2U);
  EXPECT_NE(plan.starts[0].decisions[0].node, plan.starts[0].decisions[1].node);
}

TEST(Schedule, TwoGangsNeverHoldWhatTheOtherNeeds) {
  Workplace work(4, 1);
  work.submit(gang("a", 3, gpus(1)));
  work.submit(gang("b", 3, gpus(1)));
  EXPECT_THAT(started(work.step()), ElementsAre("a"));
  EXPECT_THAT(started(work.step()), IsEmpty());
  work.end("a");
  EXPECT_THAT(started(work.step()), ElementsAre("b"));
}

TEST(Schedule, AReservationIsKeptWhileWhatItWaitsForEndsOneByOne) {
  Workplace work(2, 4);
  for (int i = 0; i < 8; ++i) work.run(job("r" + std::to_string(i), gpus(1)));
  work.submit(job("four", gpus(4)));
  const auto kept = work.running.at("r7").decisions[0].node;
  int small = 0;
  for (int i = 0; i < 4; ++i) {
    work.submit(job("s" + std::to_string(small++), gpus(1)));
    EXPECT_THAT(started(work.step()), IsEmpty());
    work.end("r" + std::to_string(7 - i));  // all on the same node
  }
  EXPECT_THAT(started(work.step()), ElementsAre("four"));
  EXPECT_EQ(work.running.at("four").decisions[0].node, kept);
}

TEST(Schedule, WhoCannotFitAnyhowKeepsNothing) {
  Workplace work(2, 4);
  auto node = testing::node("n2", {.count = 8});
  node.cordoned = "being repaired";
  work.cluster.set_node(node);
  work.run(job("runs", gpus(3)));
  work.submit(job("eight", gpus(8)));  // only on the node that is cordoned
  work.submit(job("four", gpus(4)));
  work.submit(job("one", gpus(1)));
  EXPECT_THAT(started(work.step()), UnorderedElementsAre("four", "one"));
}

TEST(Schedule, LimitsHoldAndReserveNothing) {
  Workplace work(1, 8);
  work.add(limited("vision", 2));
  work.submit(in("vision", job("a", gpus(2))));
  work.submit(in("vision", job("b", gpus(1))));
  work.submit(job("c", gpus(6)));
  const auto plan = work.step();
  EXPECT_THAT(started(plan), UnorderedElementsAre("a", "c"));
  EXPECT_EQ(why(plan, "b"), "the queue 'vision' holds 2 of its 2 GPUs");
  EXPECT_EQ(plan.waiting.at("b").list[0].dimension, Dimension::kQueueLimit);
}

TEST(Schedule, LimitsOfParentsUsersAndNamespacesHold) {
  Workplace work(1, 8);
  work.add(limited("research", 3));
  work.rules.quotas[{SubjectKind::kUser, "bob"}] = {{SubjectKind::kUser, "bob"}, {.gpu_milli = 1000}, {}};
  work.rules.quotas[{SubjectKind::kNamespace, "school"}] = {
      {SubjectKind::kNamespace, "school"}, {.milli_cpus = 4000}, {}};
  work.submit(in("research/vision", job("a", gpus(2))));
  work.submit(in("research/speech", job("b", gpus(2))));
  work.submit(of("bob", job("c", gpus(1))));
  work.submit(of("bob", job("d", gpus(1))));
  work.submit(of("bob", job("e", cpu_only(1000))));  // asks for nothing of which there is too much
  work.submit(with(job("f", cpu_only(5000)), [](Job& f) { f.name_space = "school"; }));
  const auto plan = work.step();
  EXPECT_THAT(started(plan), UnorderedElementsAre("a", "c", "e"));
  EXPECT_EQ(why(plan, "b"), "the queue 'research' holds 2 of its 3 GPUs, and 2 more are wanted");
  EXPECT_THAT(plan.waiting.at("b").remedies, ElementsAre("ask for at most 1 GPU"));
  EXPECT_EQ(why(plan, "d"), "the user 'bob' holds 1 of its 1 GPU");
  EXPECT_EQ(plan.waiting.at("d").list[0].dimension, Dimension::kQuota);
  EXPECT_EQ(why(plan, "f"), "the namespace 'school' holds 0 of its 4 CPUs, and 5 more are wanted");
}

TEST(Schedule, NobodyTakesTheLastOfALimitFromOneWhoWaitsForRoom) {
  Workplace work(2, 4);
  work.add(limited("vision", 4));
  work.run(job("other", gpus(4)));
  work.run(job("more", gpus(1)));
  work.submit(in("vision", job("four", gpus(4))));
  work.submit(in("vision", job("one", gpus(1))));
  const auto plan = work.step();
  EXPECT_THAT(started(plan), IsEmpty());
  EXPECT_THAT(why(plan, "one"), HasSubstr("the rest is kept for jobs before it"));
}

TEST(Schedule, GroupsCountTheirGpusOnce) {
  Workplace work(1, 4);
  work.add(limited("pods", 2));
  auto request = gpus(2);
  request.group = "pod";
  work.submit(in("pods", job("a", request)));
  work.submit(in("pods", job("b", request)));
  EXPECT_THAT(started(work.step()), ElementsAre("a", "b"));
  EXPECT_EQ(work.running.at("a").decisions[0].gpus, work.running.at("b").decisions[0].gpus);
  work.submit(in("pods", job("c", gpus(1))));
  EXPECT_THAT(started(work.step()), IsEmpty());
  work.end("a");
  EXPECT_THAT(started(work.step()), IsEmpty());  // "b" has them still
  work.end("b");
  EXPECT_THAT(started(work.step()), ElementsAre("c"));
}

TEST(Schedule, SharesByMemoryCountRoundedUp) {
  Workplace work(1, 1);  // 16 GiB
  auto request = gpus(1);
  request.share = {.milli = 1000, .memory_bytes = 5 * kGiB};
  EXPECT_EQ(amounts_of(work.cluster, {{request}}).gpu_milli, 313);
  EXPECT_EQ(amounts_of(work.cluster, gang("g", 3, request).gang).gpu_milli, 939);
  request.share = {.milli = 250, .memory_bytes = 0};
  EXPECT_EQ(amounts_of(work.cluster, {{request}}).gpu_milli, 250);
}

TEST(Schedule, TellsWhatCanNeverRun) {
  Workplace work(2, 4);
  work.add(limited("vision", 2));
  EXPECT_TRUE(possible(work.cluster, work.rules, in("vision", job("a", gpus(2)))));
  EXPECT_FALSE(possible(work.cluster, work.rules, job("a", gpus(5))));
  const auto error = possible(work.cluster, work.rules, in("vision/x", job("a", gpus(3)))).error();
  EXPECT_EQ(error.message, "the queue 'vision' may hold at most 2 GPUs, and 3 GPUs are asked for");
  EXPECT_EQ(error.path, "/gpus");
}

TEST(Schedule, ExtremePrioritiesAndTimeLimitsAreAsGoodAsOthers) {
  constexpr auto kLowest = std::numeric_limits<int>::min();
  constexpr auto kHighest = std::numeric_limits<int>::max();
  Workplace work(1, 1);
  work.run(within(std::chrono::milliseconds::max(), job("runs", gpus(1), kLowest)));
  work.submit(job("least", gpus(1), kLowest));
  work.submit(within(std::chrono::milliseconds::max(), job("usual", gpus(1))));
  work.submit(job("most", gpus(1), kHighest));
  const auto plan = work.make_plan();
  EXPECT_THAT(plan.order, ElementsAre("most", "usual", "least"));
  ASSERT_EQ(plan.preemptions.size(), 1U);
  EXPECT_EQ(plan.preemptions[0].job, "most");
}

TEST(Schedule, WhoStandsInAQueueThatIsGoneWaitsOn) {
  Workplace work(1, 2);
  work.add(limited("lab", 1));
  work.run(in("lab/a", job("runs", gpus(1))));
  work.submit(in("lab/a", job("waits", gpus(1))));
  EXPECT_THAT(started(work.step()), IsEmpty());
  work.rules.queues.clear();
  EXPECT_THAT(started(work.step()), ElementsAre("waits"));
}

TEST(Schedule, ALimitOfNothingKeepsBackOnlyWhoWantsIt) {
  Workplace work(1, 2);
  work.add(limited("none", 0));
  work.submit(in("none", job("gpu", gpus(1))));
  work.submit(in("none", job("cpu", cpu_only(1000))));
  const auto plan = work.step();
  EXPECT_THAT(started(plan), ElementsAre("cpu"));
  EXPECT_EQ(why(plan, "gpu"), "the queue 'none' holds 0 of its 0 GPUs");
}

TEST(Schedule, AnEmptyQueueIsAnEmptyPlan) {
  Workplace work(1, 1);
  const auto plan = work.make_plan();
  EXPECT_THAT(plan.starts, IsEmpty());
  EXPECT_THAT(plan.order, IsEmpty());
  EXPECT_THAT(plan.waiting, IsEmpty());
}

}  // namespace
}  // namespace drover::placement

#include "placement/schedule/fairness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "placement/testing/workplace.h"

namespace drover::placement::schedule {
namespace {

using namespace placement::testing;
using namespace std::chrono_literals;
using ::testing::ElementsAre;

constexpr Load kTotal{10'000, 100'000, 1'000};
constexpr Load kGpu{1'000, 0, 0};
constexpr Load kCpu{0, 10'000, 0};

/// The order in which jobs come if each starts.
struct Line {
  Rules rules;
  std::vector<Job> jobs;
  Load load = kGpu;

  void add(const Job& job) {
    jobs.push_back(job);
    jobs.back().sequence = jobs.size();
  }
  std::vector<std::string> order() const {
    FairShare fair_share(rules, kTotal);
    for (std::size_t i = 0; i < jobs.size(); ++i)
      fair_share.add(fair_share.queue_of(jobs[i]), jobs[i], load, i);
    std::vector<std::string> ids;
    while (const auto next = fair_share.next()) {
      const auto& job = jobs[*next];
      ids.push_back(job.id);
      fair_share.charge(fair_share.queue_of(job), job.user, load);
    }
    return ids;
  }
};

TEST(Fairness, SharesEvenOutBetweenQueues) {
  Line line;
  for (const auto* id : {"a1", "a2", "a3"}) line.add(in("a", job(id, gpus(1))));
  for (const auto* id : {"b1", "b2"}) line.add(in("b", job(id, gpus(1))));
  EXPECT_THAT(line.order(), ElementsAre("a1", "b1", "a2", "b2", "a3"));
}

TEST(Fairness, OfOneUserTheFirstComesFirstAndThenTheShortest) {
  Line line;
  const auto expected = [](std::chrono::minutes time, Job job) {
    job.expected = time;
    return job;
  };
  line.add(expected(90min, job("first", gpus(1))));
  line.add(job("unknown", gpus(1)));
  line.add(expected(30min, job("long", gpus(1))));
  line.add(expected(10min, job("short", gpus(1))));
  line.add(within(20min, job("limited", gpus(1))));
  line.add(expected(10min, job("as short", gpus(1))));
  line.add(with(expected(1min, job("modest", gpus(1))), [](Job& job) { job.priority = -1; }));
  EXPECT_THAT(line.order(),
              ElementsAre("first", "short", "as short", "limited", "long", "unknown", "modest"));
}

TEST(Fairness, HowLongJobsRunIsOfNoMatterBetweenUsers) {
  Line line;
  line.add(of("ann", job("a1", gpus(1))));
  for (const auto* id : {"b1", "b2", "b3"}) {
    auto quick = of("bob", job(id, gpus(1)));
    quick.expected = 1min;
    line.add(quick);
  }
  line.add(of("ann", job("a2", gpus(1))));
  EXPECT_THAT(line.order(), ElementsAre("a1", "b1", "b2", "a2", "b3"));
}

TEST(Fairness, WeightsCount) {
  Line line;
  line.rules.queues["b"] = queue("b");
  line.rules.queues["b"].weight = 2;
  for (const auto* id : {"a1", "a2", "a3"}) line.add(in("a", job(id, gpus(1))));
  for (const auto* id : {"b1", "b2", "b3", "b4"}) line.add(in("b", job(id, gpus(1))));
  EXPECT_THAT(line.order(), ElementsAre("a1", "b1", "b2", "a2", "b3", "b4", "a3"));
}

TEST(Fairness, SharesEvenOutBetweenUsersOfAQueue) {
  Line line;
  for (const auto* id : {"a1", "a2", "a3"}) line.add(of("ann", job(id, gpus(1))));
  for (const auto* id : {"b1", "b2"}) line.add(of("bob", job(id, gpus(1))));
  EXPECT_THAT(line.order(), ElementsAre("a1", "b1", "a2", "b2", "a3"));
}

TEST(Fairness, PriorityGoesBeforeShares) {
  Line line;
  line.add(in("a", job("a1", gpus(1))));
  line.add(in("a", job("a2", gpus(1), 7)));
  line.add(in("a", job("a3", gpus(1), 7)));
  line.add(in("b", job("b1", gpus(1), 3)));
  EXPECT_THAT(line.order(), ElementsAre("a2", "a3", "b1", "a1"));
}

TEST(Fairness, ChildrenShareWhatTheirParentHas) {
  Line line;
  for (const auto* id : {"x1", "x2"}) line.add(in("a/x", job(id, gpus(1))));
  for (const auto* id : {"y1", "y2"}) line.add(in("a/y", job(id, gpus(1))));
  for (const auto* id : {"b1", "b2", "b3", "b4"}) line.add(in("b", job(id, gpus(1))));
  EXPECT_THAT(line.order(), ElementsAre("x1", "b1", "y1", "b2", "x2", "b3", "y2", "b4"));
}

TEST(Fairness, AQueuesOwnJobsAreLikeAChild) {
  Line line;
  for (const auto* id : {"x1", "x2"}) line.add(in("a/x", job(id, gpus(1))));
  for (const auto* id : {"o1", "o2"}) line.add(in("a", job(id, gpus(1))));
  EXPECT_THAT(line.order(), ElementsAre("x1", "o1", "x2", "o2"));
}

TEST(Fairness, TheDominantShareDecides) {
  // One queue holds a tenth of the GPUs, the other a fifth of the CPUs.
  Rules rules;
  FairShare fair_share(rules, kTotal);
  auto a = in("a", job("a", gpus(1)));
  auto b = in("b", job("b", gpus(1)));
  a.sequence = 2;
  b.sequence = 1;
  fair_share.charge(fair_share.queue_of(a), "ann", kGpu);
  fair_share.charge(fair_share.queue_of(b), "ann", {0, 20'000, 0});
  fair_share.add(fair_share.queue_of(a), a, kGpu, 10);
  fair_share.add(fair_share.queue_of(b), b, kGpu, 20);
  EXPECT_EQ(fair_share.next(), 10U);
}

TEST(Fairness, WhatAGuaranteeCoversGoesFirst) {
  Line line;
  line.rules.queues["b"] = guaranteed("b", 2);
  for (const auto* id : {"a1", "a2", "a3"}) line.add(in("a", job(id, gpus(1), 5)));
  for (const auto* id : {"b1", "b2", "b3"}) line.add(in("b", job(id, gpus(1))));
  EXPECT_THAT(line.order(), ElementsAre("b1", "b2", "a1", "a2", "a3", "b3"));
  line.load = kCpu;  // of which nothing is guaranteed
  EXPECT_THAT(line.order(), ElementsAre("a1", "a2", "a3", "b1", "b2", "b3"));
}

TEST(Fairness, EveryJobComesOnceWhateverIsCharged) {
  Rules rules;
  FairShare fair_share(rules, kTotal);
  std::vector<Job> jobs;
  for (int i = 0; i < 200; ++i)
    jobs.push_back(with(
        of("u" + std::to_string(i % 7), in(i % 3 == 0 ? "a" : "a/b", job(std::to_string(i), gpus(1), i % 5))),
        [&](Job& j) { j.sequence = static_cast<std::uint64_t>(i); }));
  for (std::size_t i = 0; i < jobs.size(); ++i)
    fair_share.add(fair_share.queue_of(jobs[i]), jobs[i], kGpu, i);
  std::set<std::size_t> seen;
  int last = 5;
  while (const auto next = fair_share.next()) {
    const auto& job = jobs[*next];
    EXPECT_TRUE(seen.insert(*next).second);
    EXPECT_LE(job.priority, last);
    last = job.priority;
    if (seen.size() % 2 == 0) fair_share.charge(fair_share.queue_of(job), job.user, kGpu);
  }
  EXPECT_EQ(seen.size(), jobs.size());
}

}  // namespace
}  // namespace drover::placement::schedule

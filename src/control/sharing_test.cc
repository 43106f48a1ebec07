#include "control/sharing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/testing/machine.h"

namespace drover::control {
namespace {

using namespace testing;  // NOLINT: the machine
using placement::Queue;
using placement::ResourceAmounts;
using placement::Rules;
using placement::SubjectKind;
using ::testing::HasSubstr;

workload::Task in_queue(const std::string& queue, workload::Task task) {
  task.queue = queue;
  return task;
}

Rules with_queue(Queue queue) {
  Rules rules;
  const auto path = queue.path;
  rules.queues[path] = std::move(queue);
  return rules;
}

Rules with_quota(const std::string& user, placement::Limits limit, std::optional<int> max_priority) {
  Rules rules;
  const placement::Subject subject{SubjectKind::kUser, user};
  rules.quotas[subject] = {subject, limit, max_priority};
  return rules;
}

TEST(Sharing, TwoTasksShareOneGpuAndNoThird) {
  Machine machine(1);
  const auto half = [](const std::string& id, int milli) {
    auto result = task(id, 1);
    result.resources.share.milli = milli;
    return result;
  };
  ASSERT_TRUE(machine.submit(half("a", 500)));
  ASSERT_TRUE(machine.submit(half("b", 400)));
  ASSERT_TRUE(machine.submit(half("c", 101)));
  EXPECT_EQ(machine.record("a").gpus, (std::vector<placement::Grant>{{"GPU-0", 500, 8ULL << 30}}));
  EXPECT_EQ(machine.at("b"), TaskState::kStarting);
  EXPECT_EQ(machine.at("c"), TaskState::kQueued);
  EXPECT_EQ(machine.state.cluster.free("here").gpus, 0);
  EXPECT_EQ(machine.state.cluster.free("here").gpu_milli, 100);
  machine.restart();
  EXPECT_EQ(machine.state.cluster.free("here").gpu_milli, 100);
  ASSERT_TRUE(machine.on(event::Ended{"b", exited(0)}));
  EXPECT_EQ(machine.at("c"), TaskState::kStarting);
}

TEST(Sharing, AWholeGpuOfAnOlderJournalIsWholeInItsMemoryToo) {
  Machine machine(1);
  ASSERT_TRUE(machine.submit(task("old", 1)));
  auto records = std::vector{machine.record("old")};
  records[0].gpus = {{"GPU-0"}};
  machine.state = restore({.records = records}, node_with(1));
  auto tiny = task("tiny", 1);
  tiny.resources.share.memory_bytes = 1 << 20;
  ASSERT_TRUE(machine.submit(tiny));
  EXPECT_EQ(machine.at("tiny"), TaskState::kQueued);
}

TEST(Sharing, PriorityIsLimitedByTheQuota) {
  Machine machine(2);
  const auto ask = [&](int priority) {
    return machine.submit(urgent(task_of("alice", 1000, "a", 0), priority));
  };
  EXPECT_EQ(ask(1).error().kind, ErrorKind::kPermissionDenied);
  EXPECT_EQ(ask(1).error().path, "/priority");
  EXPECT_EQ(ask(-1001).error().kind, ErrorKind::kInvalid);
  ASSERT_TRUE(machine.set(with_quota("alice", {}, 10)));
  EXPECT_EQ(ask(11).error().kind, ErrorKind::kPermissionDenied);
  EXPECT_TRUE(ask(10));
  EXPECT_TRUE(machine.submit(urgent(task("root", 0), 1000)));
  EXPECT_EQ(machine.submit(urgent(task("root2", 0), 1001)).error().kind, ErrorKind::kInvalid);
}

TEST(Sharing, AQueueIsForItsUsersAndRoot) {
  Machine machine(1);
  ASSERT_TRUE(machine.set(with_queue({"vision", {}, {}, 1, {"alice"}})));
  EXPECT_TRUE(machine.submit(in_queue("vision", task_of("alice", 1000, "a", 0))));
  EXPECT_TRUE(machine.submit(in_queue("vision", task("r", 0))));
  const auto denied = machine.submit(in_queue("vision", task_of("bob", 1001, "b", 0)));
  EXPECT_EQ(denied.error().kind, ErrorKind::kPermissionDenied);
  EXPECT_EQ(denied.error().path, "/queue");
  EXPECT_EQ(machine.submit(in_queue("speech", task("s", 0))).error().kind, ErrorKind::kNotFound);
}

TEST(Sharing, AQuotaHoldsBackAndSaysSo) {
  Machine machine(4);
  ASSERT_TRUE(machine.set(with_quota("alice", {2000, {}, {}}, {})));
  ASSERT_TRUE(machine.submit(task_of("alice", 1000, "a", 2)));
  ASSERT_TRUE(machine.submit(task_of("alice", 1000, "b", 1)));
  ASSERT_TRUE(machine.submit(task_of("bob", 1001, "c", 1)));
  EXPECT_EQ(machine.at("b"), TaskState::kQueued);
  EXPECT_THAT(machine.reasons("b").front(), HasSubstr("alice"));
  EXPECT_EQ(machine.at("c"), TaskState::kStarting) << "what a quota holds back keeps nobody waiting";
  EXPECT_EQ(used_by(machine.state, {SubjectKind::kUser, "alice"}), (ResourceAmounts{2000, 1000, 1ULL << 30}));
  EXPECT_EQ(machine.submit(task_of("alice", 1000, "d", 3)).error().kind, ErrorKind::kInvalid) << "never";
  ASSERT_TRUE(machine.set({}));
  EXPECT_EQ(machine.at("b"), TaskState::kStarting) << "without the quota";
}

TEST(Sharing, CountsAQueueWithItsChildren) {
  Machine machine(4);
  ASSERT_TRUE(machine.set(with_queue({"research/vision", {}, {}, 1, {}})));
  ASSERT_TRUE(machine.submit(in_queue("research/vision", task("a", 2))));
  ASSERT_TRUE(machine.submit(task("b", 1)));
  EXPECT_EQ(used_in(machine.state, "research").gpu_milli, 2000);
  EXPECT_EQ(used_in(machine.state, "research/vision").gpu_milli, 2000);
  EXPECT_EQ(used_in(machine.state, "default").gpu_milli, 1000);
  EXPECT_EQ(used_in(machine.state, "research/vis").gpu_milli, 0);
}

TEST(Sharing, WhatIsNotCountedIsNotUsedWhereItHasALimit) {
  Machine machine(1);
  const auto ask = [&](const std::string& queue, const std::string& id, workload::Limits limits) {
    auto asked = in_queue(queue, task_of("alice", 1000, id, 0));
    asked.limits = limits;
    return machine.submit(asked);
  };
  const auto mistake = [&](workload::Limits limits) { return ask("vision/night", "a", limits).error(); };
  auto rules = with_queue({"vision", {}, {}, 1, {}});
  rules.queues["vision/night"] = {.path = "vision/night", .limit = {.gpu_milli = 1000}};
  rules.queues["vision"].limit.memory_bytes = 1ULL << 40;
  const placement::Subject alice{SubjectKind::kUser, "alice"};
  rules.quotas[alice] = {alice, {.milli_cpus = 64'000}, {}};
  ASSERT_TRUE(machine.set(rules));
  const auto wanted = task("a", 0).resources;
  EXPECT_EQ(mistake({{}, 0}).message,
            "the queue 'vision' has a limit on memory, so its tasks may use no more than they ask for");
  EXPECT_EQ(mistake({{}, wanted.memory_bytes + 1}).path, "/limits/memory");
  EXPECT_EQ(mistake({wanted.milli_cpus + 1, {}}).message,
            "the user 'alice' has a limit on CPUs, so its tasks may use no more than they ask for");
  EXPECT_EQ(mistake({0, {}}).path, "/limits/cpus");
  EXPECT_TRUE(ask("vision/night", "a", {wanted.milli_cpus, wanted.memory_bytes})) << "it is all counted";
  rules.quotas.clear();
  ASSERT_TRUE(machine.set(rules));
  EXPECT_TRUE(ask("default", "b", {0, 0})) << "nothing limits it there";
}

TEST(Sharing, AQueueWithWorkStays) {
  Machine machine(1);
  ASSERT_TRUE(machine.set(with_queue({"vision", {}, {}, 1, {}})));
  ASSERT_TRUE(machine.submit(in_queue("vision", task("a", 1))));
  const auto refused = machine.set({});
  EXPECT_EQ(refused.error().kind, ErrorKind::kConflict);
  EXPECT_EQ(refused.error().message, "The queue 'vision' has 1 task");
  ASSERT_TRUE(machine.on(event::Ended{"a", exited(0)}));
  EXPECT_TRUE(machine.set({}));
  EXPECT_FALSE(machine.set(with_queue({"no good name", {}, {}, 1, {}})));
}

}  // namespace
}  // namespace drover::control

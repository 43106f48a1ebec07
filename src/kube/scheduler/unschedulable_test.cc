#include "kube/scheduler/unschedulable.h"

#include <gtest/gtest.h>

namespace drover::kube::scheduler {
namespace {

using placement::Dimension;
using Answer = placement::Reasons;

std::string message_of(Answer reasons, std::size_t nodes) {
  return unschedulable_message({.reasons = std::move(reasons), .nodes = nodes}, "nvidia.com/gpu");
}

TEST(UnschedulableMessage, CountsNodesAsPeopleKnowIt) {
  const Answer reasons{.nodes = 6,
                       .list = {{Dimension::kFreeGpus, 2, "lacks 2 free GPUs"},
                                {Dimension::kGpuCount, 1, "has fewer than 2 GPUs"},
                                {Dimension::kEligibility, 1, "node(s) had untolerated taint(s)"},
                                {Dimension::kCpus, 2, "lacks 8 CPUs"}}};
  EXPECT_EQ(message_of(reasons, 6),
            "0/6 nodes are available: 2 Insufficient cpu, 3 Insufficient nvidia.com/gpu, "
            "1 node(s) had untolerated taint(s). 2 nodes lack 2 free GPUs; 1 node has fewer than 2 GPUs; 2 "
            "nodes lack "
            "8 CPUs.");
}

TEST(UnschedulableMessage, SaysInOurWordsWhatOthersHaveNoneFor) {
  const Answer reasons{.nodes = 3,
                       .list = {{Dimension::kInterconnect, 1, "lacks 2 free GPUs joined by NVLink"},
                                {Dimension::kModel, 2, "has no model A100"}},
                       .remedies = {"ask for 1 GPU", "ask for model T4"}};
  EXPECT_EQ(message_of(reasons, 3),
            "0/3 nodes are available: 3 node(s) had no GPUs as they are wanted. "
            "1 node lacks 2 free GPUs joined by NVLink; 2 nodes have no model A100. "
            "What helps: ask for 1 GPU; or ask for model T4.");
}

TEST(UnschedulableMessage, SaysWhoseTurnItIs) {
  Waits waits{.nodes = 2, .place = 3, .of = 7, .queue = "research"};
  waits.reasons.list = {{Dimension::kOrder, 0, "2 jobs stand before it; the first waits for 4 GPUs"}};
  EXPECT_EQ(
      unschedulable_message(waits, "nvidia.com/gpu"),
      "0/2 nodes are available: 2 node(s) were kept for others. 2 jobs stand before it; the first waits "
      "for 4 GPUs. Place 3 of 7 in the queue 'research'.");
  waits.reasons.list = {{Dimension::kQuota, 0, "user 'ann' may hold 4 GPUs and has 4"}};
  EXPECT_EQ(unschedulable_message({.reasons = waits.reasons, .nodes = 2}, "nvidia.com/gpu"),
            "0/2 nodes are available: 2 node(s) not asked because of a quota. User 'ann' may hold 4 GPUs and "
            "has 4.");
}

TEST(UnschedulableMessage, SaysThatNoNodeWasAsked) {
  EXPECT_EQ(
      message_of({.list = {{Dimension::kGang, 0, "waits for 1 of 3 pods of the gang 'team/train'"}}}, 2),
      "0/2 nodes are available: 2 node(s) not asked before the whole gang can start. Waits for 1 of 3 pods "
      "of the gang 'team/train'.");
  EXPECT_EQ(message_of({.nodes = 2, .list = {{Dimension::kGang, 0, "3 of 4 members fit now"}}}, 2),
            "0/2 nodes are available: 2 node(s) had no room for the whole gang. 3 of 4 members fit now.");
  EXPECT_EQ(message_of({.list = {{Dimension::kHeld, 0, "there is no queue 'x'"}}}, 1),
            "0/1 nodes are available: 1 node(s) not asked. There is no queue 'x'.");
}

TEST(UnschedulableMessage, CountsOneNodeOnce) {
  const Answer reasons{.nodes = 1,
                       .list = {{Dimension::kFreeGpus, 1, "2 GPUs are wanted and 1 of 2 is free"},
                                {Dimension::kCpus, 1, "8 CPUs are wanted and 3 of 8 are free"}}};
  EXPECT_EQ(message_of(reasons, 1),
            "0/1 nodes are available: 1 Insufficient nvidia.com/gpu. 2 GPUs are wanted and 1 of 2 is free; 8 "
            "CPUs are "
            "wanted and 3 of 8 are free.");
  EXPECT_EQ(message_of({}, 0), "No nodes available to schedule pods.");
}

TEST(UnschedulableMessage, IsNoLongerThanAnEventMayBe) {
  Answer reasons{.nodes = 400};
  for (int i = 0; i < 400; ++i)
    reasons.list.push_back({Dimension::kModel, 1, "has no model " + std::string(40, 'x')});
  const auto message = message_of(reasons, 400);
  EXPECT_LE(message.size(), kLongestMessage);
  EXPECT_TRUE(message.starts_with("0/400 nodes are available: 400 "));
}

}  // namespace
}  // namespace drover::kube::scheduler

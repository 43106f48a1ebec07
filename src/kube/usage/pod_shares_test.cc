#include "kube/usage/pod_shares.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drover::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

const ClaimNames kNames{"gpu.nvidia.com", "node1"};

class PodSharesTest : public ::testing::Test {
 protected:
  PodSharesTest() {
    for (const char* uuid : {"GPU-0", "GPU-1", "GPU-2"}) {
      gpu::Device device;
      device.uuid = uuid;
      inventory_.devices.push_back(device);
    }
  }
  static dra::ClaimShare guarded(const std::string& name, const std::string& gpu) {
    return {{"ml", name, "uid-" + name}, {{gpu, 8ULL << 30, 100}}, "/shares/uid-" + name};
  }
  static dra::ClaimShare counted(const std::string& name, const std::string& gpu) {
    return {{"ml", name, "uid-" + name}, {{gpu, 8ULL << 30, 100}}, ""};
  }
  /// A container that runs, and has these claims.
  void add(const std::string& container, const std::vector<std::string>& claims,
           const std::string& name_space = "ml") {
    ContainerUse use{name_space, "pod", container, {}, {}};
    for (const auto& claim : claims) use.claims.push_back({claim, kNames.driver, kNames.pool, "gpu-0", "s"});
    uses_.push_back(std::move(use));
    running_.push_back({"id-" + name_space + "-" + container, name_space, "pod", container, "uid-pod"});
  }
  share::Shares watched(const std::vector<dra::ClaimShare>& claims) const {
    return watched({.claims = claims, .uses = uses_});
  }
  share::Shares watched(const NodeShares& shares) const {
    return watched_shares(inventory_, pod_shares(shares, kNames, running_), running_);
  }

  gpu::Inventory inventory_;
  std::vector<ContainerUse> uses_;
  std::vector<RunningContainer> running_;
};

TEST_F(PodSharesTest, ContainersOfOneClaimHaveItsShareTogether) {
  add("a", {"one"});
  add("b", {"one"});
  add("c", {});
  add("a", {"one"}, "other");  // a claim of the same name in another namespace
  const auto shares = watched({guarded("one", "GPU-1")});
  ASSERT_THAT(shares.allowances, SizeIs(1));
  EXPECT_EQ(shares.allowances[0], (share::Allowance{.gpu = "GPU-1",
                                                    .name = "uid-one",
                                                    .tasks = {"id-ml-a", "id-ml-b"},
                                                    .bytes = 8ULL << 30,
                                                    .tier = "guarded"}));
  EXPECT_THAT(shares.guarded, ElementsAre(Pair("uid-one", share::GuardedTask{"/shares/uid-one"})));
  ASSERT_THAT(shares.gpus, SizeIs(1));
  EXPECT_EQ(shares.gpus[0].uuid, "GPU-1");
}

TEST_F(PodSharesTest, PagesAreLookedAtBeforeAContainerRuns) {
  const auto shares = watched({guarded("one", "GPU-0"), counted("two", "GPU-0")});
  ASSERT_THAT(shares.allowances, SizeIs(2));
  EXPECT_THAT(shares.allowances[0].tasks, IsEmpty());
  EXPECT_EQ(shares.allowances[1].tier, "counted");
  EXPECT_THAT(shares.guarded, SizeIs(1));
}

TEST_F(PodSharesTest, WhatIsOfTwoSharesIsNobodysOffence) {
  add("a", {"one", "two"});
  add("b", {"two"});
  EXPECT_THAT(watched({counted("one", "GPU-0"), counted("two", "GPU-0")}).allowances, IsEmpty());
  EXPECT_THAT(watched({counted("one", "GPU-0"), counted("two", "GPU-1")}).allowances, SizeIs(2));
  EXPECT_THAT(watched({guarded("one", "GPU-0"), counted("two", "GPU-0")}).allowances, SizeIs(1));
}

TEST_F(PodSharesTest, AReplicaIsOfTheContainerThatHasItsPages) {
  add("init", {});
  add("main", {});
  running_[0].replica = "GPU-0_2_aa";
  running_[1].replica = "GPU-0_2_bb";
  const share::Limit limit{"GPU-0", 8ULL << 30, 250};
  NodeShares shares;
  shares.guarded = {{"GPU-0_2_aa", "GPU-0::2", limit, "/replicas/a"},
                    {"GPU-0_2_bb", "GPU-0::2", limit, "/replicas/b"},
                    {"GPU-0_3_cc", "GPU-0::3", limit, "/replicas/c"}};
  add("free", {});
  shares.unsure = {{"ml", "pod", "main", "GPU-0::2", limit},
                   {"ml", "pod", "free", "GPU-1::0", {"GPU-1", 1ULL << 29, 100}}};
  const auto pods = pod_shares(shares, kNames, running_);
  ASSERT_THAT(pods, SizeIs(4));
  EXPECT_THAT(pods[0].containers, ElementsAre("id-ml-init"));
  EXPECT_THAT(pods[1].containers, ElementsAre("id-ml-main"));
  EXPECT_EQ(pods[1].about, (EventTarget{.kind = "Pod", .name_space = "ml", .name = "pod", .uid = "uid-pod"}));
  EXPECT_EQ(pods[2].about.name, "") << "nobody runs with it";
  const auto watched = this->watched(shares);
  EXPECT_THAT(watched.guarded, SizeIs(3));
  ASSERT_THAT(watched.allowances, SizeIs(4));
  EXPECT_EQ(watched.allowances[3].tier, "counted");
  EXPECT_THAT(watched.allowances[3].tasks, ElementsAre("id-ml-free"));
}

}  // namespace
}  // namespace drover::kube

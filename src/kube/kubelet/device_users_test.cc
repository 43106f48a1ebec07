#include "kube/kubelet/device_users.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drover::kube {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const DeviceUsers::Clock::time_point kStart{1h};
const ContainerUse kUse = {"team", "trains", "main", {{"nvidia.com/gpu", {"GPU-1"}}}, {}};
const PodName kPod = {"team", "trains"};
const std::map<PodName, std::string> kRuns = {{kPod, "uid"}};

TEST(DeviceUsers, StayWhileAKubeletThatJustStartedDoesNotKnowThem) {
  DeviceUsers users;
  users.update({{kPod}, {kUse}}, kRuns, kStart);
  EXPECT_TRUE(users.known());
  users.update({}, kRuns, kStart + 1s);
  EXPECT_THAT(users.containers(), ElementsAre(kUse));
  users.update({}, kRuns, kStart + 1h);
  EXPECT_THAT(users.containers(), ElementsAre(kUse));
  users.update({{kPod}, {kUse}}, kRuns, kStart + 2h);
  EXPECT_THAT(users.containers(), ElementsAre(kUse));
}

TEST(DeviceUsers, GoWithTheirPods) {
  DeviceUsers users;
  users.update({{kPod}, {kUse}}, kRuns, kStart);
  users.update({}, std::map<PodName, std::string>{}, kStart + 1s);
  EXPECT_THAT(users.containers(), IsEmpty());
  users.update({{kPod}, {kUse}}, kRuns, kStart + 2s);
  users.update({{kPod}, {}}, std::map<PodName, std::string>{{kPod, "another"}}, kStart + 3s);
  EXPECT_THAT(users.containers(), IsEmpty()) << "another pod of the same name";
}

TEST(DeviceUsers, AreNotForgottenWithTheKubelet) {
  auto forgotten = kUse;
  forgotten.forgotten = true;
  DeviceUsers users;
  users.update({{kPod}, {kUse}}, kRuns, kStart);
  users.update({}, kRuns, kStart + 1s);
  for (const auto later : {2s, 3s}) {
    users.update({{kPod}, {}}, kRuns, kStart + later);  // it knows the pod, and of no device that it has
    EXPECT_THAT(users.containers(), ElementsAre(forgotten));
  }
  users.update({{kPod}, {}}, std::nullopt, kStart + 3s);  // the runtime starts again meanwhile
  EXPECT_THAT(users.containers(), ElementsAre(forgotten));
  users.update({{kPod}, {kUse}}, kRuns, kStart + 4s);
  EXPECT_THAT(users.containers(), ElementsAre(kUse));
  users.update({{kPod}, {}}, kRuns, kStart + 5s);
  users.update({}, std::map<PodName, std::string>{}, kStart + 6s);
  EXPECT_THAT(users.containers(), IsEmpty());
}

TEST(DeviceUsers, AreNotKnownBeforeTheKubeletTellsOfAllPodsThatRun) {
  DeviceUsers users;
  users.update({}, kRuns, kStart);
  EXPECT_FALSE(users.known());
  users.update({{kPod}, {kUse}}, kRuns, kStart + 1s);
  EXPECT_TRUE(users.known());
  users.update({}, kRuns, kStart + 2s);
  EXPECT_TRUE(users.known());
}

TEST(DeviceUsers, AreKnownAllTheSameWhenAPodIsNotTheKubelets) {
  DeviceUsers users;
  users.update({}, kRuns, kStart);
  users.update({}, kRuns, kStart + DeviceUsers::kPatience - 1s);
  EXPECT_FALSE(users.known());
  users.update({}, kRuns, kStart + DeviceUsers::kPatience);
  EXPECT_TRUE(users.known());
}

TEST(DeviceUsers, AreWhatTheKubeletSaysWhenTheRuntimeSaysNothing) {
  DeviceUsers users;
  users.update({{kPod}, {kUse}}, std::nullopt, kStart);
  EXPECT_TRUE(users.known());
  users.update({}, std::nullopt, kStart + 1s);
  EXPECT_THAT(users.containers(), IsEmpty());
}

}  // namespace
}  // namespace drover::kube

#include "kube_node/checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log_once.h"
#include "kube/testing/machines.h"

namespace drover {
namespace {

using kube::testing::uuid;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(NodeChecks, WhatIsMissingIsToldOnce) {
  std::vector<std::string> told;
  LogOnce log_once([&](const std::string& sentence) { told.push_back(sentence); });
  const MissingFiles missing = {{uuid(0), "There is no device file '/dev/nvidia0'"},
                                {uuid(1), "There is no device file '/dev/nvidia1'"}};
  for (int round = 0; round < 3; ++round) log_once.report(check_given(missing, 2));
  log_once.report(check_given({}, 2));
  log_once.report(check_given({*missing.rbegin()}, 2));
  EXPECT_THAT(told, ElementsAre("2 of 2 GPUs are given to no pod: There is no device file '/dev/nvidia0'",
                                "1 of 2 GPUs are given to no pod: There is no device file '/dev/nvidia1'"));
}

TEST(NodeChecks, ARuntimeIsFitThatSaysThatItDoesCdi) {
  EXPECT_TRUE(fitness_of({.name = "containerd", .version = "2.1", .cdi = kube::CdiSupport::kYes}));
  for (const auto cdi : {kube::CdiSupport::kNo, kube::CdiSupport::kUnknown}) {
    const auto fitness =
        fitness_of({.name = "containerd", .version = "1.6", .cdi = cdi, .advice = "set enable_cdi = true"});
    ASSERT_FALSE(fitness);
    EXPECT_THAT(fitness.error().message, HasSubstr("containerd 1.6 does not do what CDI"));
    EXPECT_EQ(fitness.error().hint, "set enable_cdi = true");
  }
}

TEST(NodeChecks, ForgottenPodsAreNamedOnceEach) {
  kube::ContainerUse known{"team-a", "known", "main", {}, {}};
  kube::ContainerUse lost{"team-a", "lost", "main", {}, {}};
  lost.forgotten = true;
  auto beside = lost;
  beside.container = "beside";
  EXPECT_TRUE(check_nothing_is_forgotten({known}));
  const auto found = check_nothing_is_forgotten({known, lost, beside});
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message, HasSubstr("the devices of 'team-a/lost': nobody else"));
}

TEST(NodeChecks, ADriverServesClaimsThatIsRegisteredAndHasNoTrouble) {
  EXPECT_EQ(why_not_served({.registered = true}), "");
  EXPECT_EQ(why_not_served({}), "the kubelet has not registered the driver yet");
  EXPECT_EQ(why_not_served({.sockets = "no socket", .slices = "no slices"}), "no socket; no slices");
  EXPECT_EQ(why_not_served({.registered = true, .recovery = "no list"}), "no list");
}

}  // namespace
}  // namespace drover

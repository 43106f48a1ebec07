#include "kube/plugin/usage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drover::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using namespace std::chrono_literals;

constexpr Usage::Clock::time_point kStart{1000s};

std::vector<ContainerUse> container_with(const std::string& resource, const std::string& id) {
  return {{"default", "pod", "main", {{resource, {id}}}, {}}};
}

TEST(Usage, IsWhatTheKubeletTells) {
  Usage usage;
  usage.seen(container_with("x/gpu", "GPU-1::3"), kStart);
  EXPECT_THAT(usage.holders(), ElementsAre(Pair("GPU-1", ElementsAre("x/gpu"))));
  usage.seen({}, kStart + 1s);
  EXPECT_THAT(usage.holders(), IsEmpty());
}

TEST(Usage, SaysWhichPodHasWhatTheKubeletHasForgotten) {
  Usage usage;
  auto containers = container_with("x/gpu", "GPU-1");
  containers.front().forgotten = true;
  usage.seen(containers, kStart);
  EXPECT_THAT(usage.holders(), ElementsAre(Pair("GPU-1", ElementsAre("x/gpu"))));
  EXPECT_EQ(usage.forgotten_user("GPU-1"), "'default/pod'");
  usage.seen(container_with("x/gpu", "GPU-1"), kStart + 1s);
  EXPECT_EQ(usage.forgotten_user("GPU-1"), "");
  EXPECT_TRUE(usage.has("GPU-1"));
  usage.seen({}, kStart + 2s);
  EXPECT_FALSE(usage.has("GPU-1"));
}

TEST(Usage, CountsWhatWasJustGivenAndThenWhatIsToldOfIt) {
  Usage usage;
  usage.granted("x/gpu", "GPU-1", kStart);
  usage.seen({}, kStart + 1s);  // the pod is not there yet
  EXPECT_THAT(usage.holders(), ElementsAre(Pair("GPU-1", ElementsAre("x/gpu"))));
  usage.seen(container_with("x/gpu", "GPU-1"), kStart + 2s);
  usage.seen({}, kStart + 3s);  // it has ended
  EXPECT_THAT(usage.holders(), IsEmpty());
}

TEST(Usage, DoesNotTakeAnOldAnswerForNews) {
  Usage usage;
  usage.granted("x/gpu", "GPU-1", kStart);
  usage.seen(container_with("x/gpu", "GPU-1"), kStart - 1s);  // of the pod that had it before
  usage.seen({}, kStart + 1s);
  EXPECT_THAT(usage.holders(), ElementsAre(Pair("GPU-1", ElementsAre("x/gpu"))));
}

TEST(Usage, ForgetsAPodThatNeverCame) {
  Usage usage;
  usage.granted("x/gpu", "GPU-1", kStart);
  usage.seen({}, kStart + Usage::kPatience + 1s);
  EXPECT_THAT(usage.holders(), IsEmpty());
}

}  // namespace
}  // namespace drover::kube

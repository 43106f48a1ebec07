#include "kube/usage/idle_pods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drover::kube {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

metrics::Owner owner(const std::string& pod) {
  return {{"namespace", "n"}, {"pod", pod}, {"container", "task"}};
}

gpu::GpuUsage percent(gpu::Reading value) {
  gpu::GpuUsage usage;
  usage.answers = true;
  usage.gpu_percent = value;
  return usage;
}

/// Pod a has GPU-1, and b and c share GPU-2.
class IdlePodsTest : public ::testing::Test {
 protected:
  IdlePodsTest() {
    sight_.usage = {{"GPU-1", percent(0)}, {"GPU-2", percent(0)}};
    sight_.holders = {{"GPU-1", {owner("a")}}, {"GPU-2", {owner("b"), owner("c")}}};
    sight_.uids = {{{"n", "a"}, "1"}, {{"n", "b"}, "2"}, {{"n", "c"}, "3"}};
    sight_.owner_of = [](std::uint32_t pid) { return owner(pid == 7 ? "b" : "elsewhere"); };
  }
  IdleTimes after(std::chrono::milliseconds time) { return pods_.update(sight_, now_ += time); }

  IdlePods::Sight sight_;
  IdlePods pods_;
  IdlePods::Clock::time_point now_{1h};
};

TEST_F(IdlePodsTest, TellsHowLongEachDidNothing) {
  EXPECT_THAT(after(0s), ElementsAre(Pair("1", 0ms), Pair("2", 0ms), Pair("3", 0ms)));
  EXPECT_THAT(after(10s), ElementsAre(Pair("1", 10s), Pair("2", 10s), Pair("3", 10s)));
  sight_.usage["GPU-1"] = percent(1);
  gpu::ProcessUsage works;
  works.pid = 7;
  works.sm_percent = 40;
  sight_.usage["GPU-2"].processes = {works};
  EXPECT_THAT(after(5s), ElementsAre(Pair("1", 0ms), Pair("2", 0ms), Pair("3", 15s)));
  sight_.owner_of = {};
  EXPECT_THAT(after(0s), ElementsAre(Pair("1", 0ms), Pair("2", 0ms), Pair("3", 0ms))) << "nobody knows whose";
  sight_.usage["GPU-2"] = {};
  EXPECT_THAT(after(5s), ElementsAre(Pair("1", 0ms), Pair("2", 0ms), Pair("3", 0ms))) << "it does not answer";
}

TEST_F(IdlePodsTest, OfWhomNothingIsKnownNothingIsTold) {
  after(0s);
  sight_.uids.erase({"n", "a"});
  sight_.holders.erase("GPU-2");
  EXPECT_THAT(after(10s), IsEmpty());
  sight_.uids[{"n", "a"}] = "another";
  EXPECT_THAT(after(10s), ElementsAre(Pair("another", 0ms)))
      << "of the same name, and seen for the first time";
  sight_.usage.clear();
  EXPECT_THAT(after(10s), IsEmpty()) << "its GPU is gone";
}

}  // namespace
}  // namespace drover::kube

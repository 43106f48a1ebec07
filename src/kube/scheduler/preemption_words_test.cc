#include "kube/scheduler/preemption_words.h"

#include <gtest/gtest.h>

namespace drover::kube::scheduler {
namespace {

TEST(PreemptionWords, AreReadAsTheyWereWritten) {
  for (const bool lent : {false, true})
    for (const auto& pod :
         {std::string(), std::string("train-0"), std::string("a.b-c.7"), std::string(253, 'x')}) {
      const Preemption told{lent, pod};
      EXPECT_EQ(read_preemption(to_string(told)), told) << to_string(told);
    }
  EXPECT_EQ(to_string(Preemption{false, "train-0"}),
            "ended by the scheduler to make room for the pod 'train-0', which has a higher priority");
  EXPECT_EQ(to_string(Preemption{}), "ended by the scheduler to make room for a pod with a higher priority");
}

TEST(PreemptionWords, OfOthersAreNone) {
  for (const auto& pod : {"Train", "-a", "a-", ".", "a b", "a'b", "a\nb", "../../etc", "ä", "a', for 'b"})
    EXPECT_EQ(read_preemption(to_string(Preemption{false, pod})), std::nullopt) << pod;
  EXPECT_EQ(read_preemption(to_string(Preemption{true, std::string(254, 'x')})), std::nullopt);
  const auto good = to_string(Preemption{false, "train-0"});
  for (std::size_t length = 0; length < good.size(); ++length)
    EXPECT_EQ(read_preemption(good.substr(0, length)), std::nullopt);
  for (const auto& text : {std::string("'"), std::string("''"), " " + good, good + " ", good + good,
                           good + std::string(1, '\0'), std::string("preempted by the scheduler")})
    EXPECT_EQ(read_preemption(text), std::nullopt) << text;
}

}  // namespace
}  // namespace drover::kube::scheduler

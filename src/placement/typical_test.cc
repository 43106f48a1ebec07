#include "placement/typical.h"

#include <gtest/gtest.h>

#include "placement/testing/clusters.h"

namespace drover::placement {
namespace {

using testing::gpus;

TEST(LearntMix, WeighsRequestsByHowOftenTheyCame) {
  LearntMix mix;
  for (int i = 0; i < 30; ++i) mix.add(gpus(i % 3 == 0 ? 2 : 1));
  ASSERT_EQ(mix.typical().size(), 2U);
  EXPECT_EQ(mix.typical()[0].request, gpus(2));
  EXPECT_NEAR(mix.typical()[1].weight / mix.typical()[0].weight, 2, 0.05);
}

TEST(LearntMix, TellsGroupsNotApart) {
  LearntMix mix;
  for (const auto* group : {"a", "b"}) {
    auto request = gpus(1);
    request.group = group;
    mix.add(request);
  }
  EXPECT_EQ(mix.typical().size(), 1U);
}

TEST(LearntMix, ForgetsWhatNobodyAsksForAnyMore) {
  LearntMix mix;
  for (int i = 0; i < 1000; ++i) mix.add(gpus(4));
  for (int i = 0; i < 10'000; ++i) mix.add(gpus(1));
  EXPECT_GT(mix.typical()[1].weight / mix.typical()[0].weight, 100);
}

TEST(LearntMix, KeepsTheHeaviestAndStaysFiniteForever) {
  LearntMix mix;
  for (int i = 0; i < 60'000; ++i) {
    mix.add(gpus(1));
    auto odd = gpus(1);
    odd.milli_cpus = 1 + i % 1000;
    mix.add(odd);
  }
  EXPECT_EQ(mix.typical().size(), 256U);
  double most = 0;
  for (const auto& typical : mix.typical()) {
    EXPECT_GT(typical.weight, 0);
    EXPECT_LT(typical.weight, 1e15);
    if (typical.request == gpus(1)) most = typical.weight;
  }
  EXPECT_GT(most, 0);
}

}  // namespace
}  // namespace drover::placement

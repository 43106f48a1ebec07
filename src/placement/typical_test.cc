#include "placement/typical.h"

#include <gtest/gtest.h>

#include "placement/testing/clusters.h"

namespace drover::placement {
namespace {

using testing::gpus;

TEST(LearntMix, WeighsRequestsByHowOftenTheyCame) {
  LearntMix mix;
  for (int i = 0; i < 30; ++i) mix.add(gpus(i % 3 == 0 ? 2 : 1));
  const auto typical = mix.heaviest(10);
  ASSERT_EQ(typical.size(), 2U);
  EXPECT_EQ(typical[1].request, gpus(2));
  EXPECT_NEAR(typical[0].weight / typical[1].weight, 2, 0.05);
  EXPECT_EQ(mix.heaviest(1), std::vector{typical[0]});
}

TEST(LearntMix, TellsNotApartWhatNeedsTheSameRoom) {
  LearntMix mix;
  for (const auto* group : {"a", "b"}) {
    auto request = gpus(1);
    request.group = group;
    request.memory_bytes = mix.heaviest(1).empty() ? 1 << 20 : 2 << 20;
    mix.add(request);
  }
  EXPECT_EQ(mix.heaviest(10).size(), 1U);
}

TEST(LearntMix, ForgetsWhatNobodyAsksForAnyMore) {
  LearntMix mix;
  for (int i = 0; i < 1000; ++i) mix.add(gpus(4));
  for (int i = 0; i < 10'000; ++i) mix.add(gpus(1));
  const auto typical = mix.heaviest(2);
  EXPECT_EQ(typical[0].request, gpus(1));
  EXPECT_GT(typical[0].weight / typical[1].weight, 100);
}

TEST(LearntMix, KeepsTheHeaviestAndStaysFiniteForever) {
  LearntMix mix;
  for (int i = 0; i < 60'000; ++i) {
    mix.add(gpus(1));
    auto odd = gpus(1);
    odd.milli_cpus = 1 + i % 1000;
    mix.add(odd);
  }
  const auto typical = mix.heaviest(1000);
  EXPECT_EQ(typical.size(), 256U);
  EXPECT_EQ(typical[0].request, gpus(1));
  EXPECT_LT(typical.front().weight, 1e15);
  EXPECT_GT(typical.back().weight, 0);
}

}  // namespace
}  // namespace drover::placement

#include "placement/filling.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

namespace drover::placement {
namespace {

std::vector<Filler> fillers_from(const std::vector<double>& values) {
  constexpr int kMilli[] = {190, 470, 1000, 330, 1000, 1000};
  constexpr int kGpus[] = {1, 1, 1, 1, 4, 2};
  std::vector<Filler> fillers;
  for (std::size_t i = 0; i < values.size(); ++i)
    fillers.push_back(
        {static_cast<int>(i), kGpus[i], kMilli[i], values[i], 1000.0 * static_cast<double>(i + 1)});
  return fillers;
}

std::vector<double> any_values() {
  std::vector<double> values;
  for (const int most : {190, 470, 1000, 330, 4000, 2000}) values.push_back(*rc::gen::inRange(0, most));
  return values;
}

TEST(Filling, IsWorthItsBestFillingWhenItIsCold) {
  const Filling filling(fillers_from({190, 470, 900, 330, 3900}), 2, false);
  EXPECT_NEAR(filling.worth(100), 990, 3);  // 330 three times
  EXPECT_NEAR(filling.worth(80), 800, 3);   // 470 and 330
  EXPECT_NEAR(filling.worth(18), 0, 1e-9);  // nothing is so small
  EXPECT_NEAR(filling.idle_worth(3, 1), 2970, 9);
  EXPECT_NEAR(filling.cpus(80), 6000, 1);
}

TEST(Filling, KeepsIdleGpusTogetherForThoseThatNeedSeveral) {
  const Filling filling(fillers_from({0, 0, 900, 0, 3900}), 2, false);
  EXPECT_NEAR(filling.idle_worth(4, 1), 3900, 9);
  EXPECT_NEAR(filling.idle_worth(5, 1), 4800, 9);
  EXPECT_NEAR(filling.idle_cpus(5, 1), 5000 + 3000, 1);
}

TEST(Filling, LeavesOutWhatTheNodeHasTooFewCpusFor) {
  const Filling filling({{0, 1, 1000, 900, 0}, {1, 2, 1000, 1950, 8000}, {2, 2, 1000, 1900, 4000}}, 2, false);
  EXPECT_NEAR(filling.idle_worth(2, 0), 1800, 9);
  EXPECT_NEAR(filling.idle_worth(2, 1), 1900, 9);
  EXPECT_NEAR(filling.idle_worth(2, 2), 1950, 9);
  EXPECT_NEAR(filling.idle_cpus(2, 1), 4000, 1);
}

TEST(Filling, IsWorthMoreWhereThereAreManyWays) {
  const Filling one(fillers_from({0, 470}), 20, false);
  const Filling two({{0, 1, 470, 470, 0}, {1, 1, 470, 470, 0}}, 20, false);
  EXPECT_GT(two.worth(50), one.worth(50));
}

TEST(Filling, ExpectsALossWhereWhatComesIsNotWhatFitsBest) {
  // Two 470s fill an idle GPU best. An 810, three times as frequent, leaves 190 of it to nobody.
  const Filling filling({{0, 1, 470, 470, 0, 1}, {1, 1, 810, 810, 0, 3}}, 2, false);
  EXPECT_NEAR(filling.expected_loss(), (940.0 - 810) * 3 / 4, 3);
  const Filling whole({{0, 1, 1000, 1000, 0, 1}}, 2, false);
  EXPECT_NEAR(whole.expected_loss(), 0, 1e-6);
  EXPECT_EQ(Filling({}, 2, false).expected_loss(), 0);
}

RC_GTEST_PROP(Filling, NeverLosesByMoreRoom, ()) {
  const Filling filling(fillers_from(any_values()), 10, false);
  for (int level = 1; level <= Filling::kLevels; ++level)
    RC_ASSERT(filling.worth(level) >= filling.worth(level - 1));
  for (int idle = 1; idle <= Filling::kMaxIdle; ++idle)
    RC_ASSERT(filling.idle_worth(idle, 2) >= filling.idle_worth(idle - 1, 2));
}

/// What use() counts is how the worth changes with a value.
RC_GTEST_PROP(Filling, UsesAsItsWorthChanges, ()) {
  const auto values = any_values();
  const Filling filling(fillers_from(values), 10, true);
  const auto level = *rc::gen::inRange(0, Filling::kLevels + 1);
  const auto idle = *rc::gen::inRange(0, Filling::kMaxIdle + 1);
  std::vector<double> levels(Filling::kLevels + 1, 0);
  const auto tier = *rc::gen::inRange<std::size_t>(0, 3);
  std::vector<std::vector<double>> idles(tier + 1, std::vector<double>(Filling::kMaxIdle + 1, 0));
  levels[static_cast<std::size_t>(level)] = 1;
  idles[tier][static_cast<std::size_t>(idle)] = 2;
  std::vector<double> used(values.size(), 0);
  filling.use(levels, idles, used);
  double cpus = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    constexpr double kStep = 1e-3;
    auto more = values;
    more[i] += kStep;
    auto less = values;
    less[i] -= kStep;
    const Filling above(fillers_from(more), 10, false);
    const Filling below(fillers_from(less), 10, false);
    const auto rise = above.worth(level) - below.worth(level) +
                      2 * (above.idle_worth(idle, tier) - below.idle_worth(idle, tier));
    RC_ASSERT(std::abs(rise / (2 * kStep) - used[i]) < 1e-3 * (1 + used[i]));
    cpus += used[i] * 1000.0 * static_cast<double>(i + 1);
  }
  RC_ASSERT(std::abs(filling.cpus(level) + 2 * filling.idle_cpus(idle, tier) - cpus) < 1e-3 * (1 + cpus));
}

}  // namespace
}  // namespace drover::placement

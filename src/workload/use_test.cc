#include "workload/use.h"

#include <gtest/gtest.h>

namespace drover::workload {
namespace {

Use use_of_gpus(int gpus, double percent, double seconds = 600) {
  return {.seconds = seconds, .gpus = gpus, .gpu_percent_mean = percent};
}

TEST(UseAdviceTest, WhoUsesLittleIsTold) {
  EXPECT_EQ(advice(use_of_gpus(1, 12.4), 1000), "mean GPU use 12 %: would half a GPU do?");
  EXPECT_EQ(advice(use_of_gpus(4, 12), 1000), "mean GPU use 12 % over 4 GPUs: would fewer do?");
  EXPECT_EQ(advice(use_of_gpus(1, 12), 500),
            "mean GPU use 12 % of a share of 50 %: would a smaller share do?");
  EXPECT_EQ(advice(use_of_gpus(1, 0), 1000), "mean GPU use 0 %: did it need its GPU?");
  EXPECT_EQ(advice(use_of_gpus(2, 0.1), 1000), "mean GPU use 0 %: did it need its GPUs?");
}

TEST(UseAdviceTest, WhoUsesEnoughOrRanShortlyIsNot) {
  EXPECT_EQ(advice(use_of_gpus(1, 40), 1000), "");
  EXPECT_EQ(advice(use_of_gpus(1, 30), 500), "");
  EXPECT_EQ(advice(use_of_gpus(1, 5, 59), 1000), "");
  EXPECT_EQ(advice(use_of_gpus(0, 0), 1000), "");
  EXPECT_EQ(advice({.seconds = 600, .gpus = 1}, 1000), "") << "nobody could measure";
  EXPECT_EQ(advice(use_of_gpus(1, 5), 0), "");
}

}  // namespace
}  // namespace drover::workload

#include "placement/run_times.h"

#include <gtest/gtest.h>

namespace drover::placement {
namespace {

using namespace std::chrono_literals;

TEST(RunTimes, NothingIsExpectedOfAUserOfWhomNothingHasRun) {
  RunTimes times;
  EXPECT_EQ(times.expected({"alice", "train", "1"}), std::nullopt);
  times.add({"bob", "train", "1"}, 10s);
  EXPECT_EQ(times.expected({"alice", "train", "1"}), std::nullopt) << "others' work says nothing of hers";
}

TEST(RunTimes, TheCloserTheKindTheMoreItSays) {
  RunTimes times;
  for (int i = 0; i < 50; ++i) times.add({"alice", "train", "8"}, 100s);
  for (int i = 0; i < 50; ++i) times.add({"alice", "test", "8"}, 10s);
  const auto train = *times.expected({"alice", "train", "8"}), test = *times.expected({"alice", "test", "8"});
  EXPECT_GT(train, 95s);
  EXPECT_LT(train, 100s);
  EXPECT_GT(test, 10s);
  EXPECT_LT(test, 12s);
  EXPECT_EQ(times.expected({"alice", "other", "8"}), 55s) << "as all of that size";
  EXPECT_EQ(times.expected({"alice", "other", "1"}), 55s) << "as all of hers";
}

TEST(RunTimes, OneValueAloneWeighsLittle) {
  RunTimes times;
  for (int i = 0; i < 99; ++i) times.add({"alice", "train", "1"}, 10s);
  times.add({"alice", "train", "8"}, 1000s);
  const auto expected = *times.expected({"alice", "train", "8"});
  EXPECT_GT(expected, 500s);
  EXPECT_LT(expected, 800s);
}

TEST(RunTimes, WhatIsTakenAwayIsAsIfItHadNeverBeen) {
  RunTimes times;
  times.add({"alice", "train", "1"}, 10s);
  const auto before = times;
  times.add({"alice", "train", "8"}, 7s);
  times.add({"bob", "x", "8"}, 7s);
  times.remove({"alice", "train", "8"}, 7s);
  times.remove({"bob", "x", "8"}, 7s);
  EXPECT_EQ(times, before);
  times.remove({"alice", "train", "1"}, 10s);
  EXPECT_TRUE(times.empty());
}

}  // namespace
}  // namespace drover::placement

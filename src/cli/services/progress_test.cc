#include "cli/services/progress.h"

#include <gtest/gtest.h>

namespace drover::cli {
namespace {

using namespace std::chrono_literals;

const Progress::Clock::time_point kBegin{};

TEST(Progress, ManyFailuresInALongTimeAreTooMany) {
  Progress progress;
  progress.see("/web", 0, "1", kBegin);
  progress.see("/web", 0, "2", kBegin + 1s);
  progress.see("/web", 0, "2", kBegin + 1h);
  EXPECT_FALSE(progress.failing(kBegin + 1h)) << "two only";
  progress.see("/web", 0, "3", kBegin + 1h);
  EXPECT_FALSE(progress.failing(kBegin + kLongFailing - 1s));
  const auto failing = progress.failing(kBegin + kLongFailing);
  ASSERT_TRUE(failing);
  EXPECT_EQ(failing->app, "/web");
  EXPECT_EQ(failing->failures, 3u);
  EXPECT_EQ(failing->time, kLongFailing);
}

TEST(Progress, MoreThatAreUpBeginAfresh) {
  Progress progress;
  for (const auto* id : {"1", "2", "3"}) progress.see("/web", 0, id, kBegin);
  progress.see("/web", 1, "3", kBegin + 1min);
  EXPECT_FALSE(progress.failing(kBegin + 1h));
  // What goes up and down again comes no further.
  for (const auto* id : {"4", "5", "6"}) {
    progress.see("/web", 0, id, kBegin + 2min);
    progress.see("/web", 1, id, kBegin + 2min);
  }
  EXPECT_TRUE(progress.failing(kBegin + 2min + kLongFailing));
}

TEST(Progress, EachAppCountsForItself) {
  Progress progress;
  for (const auto* app : {"/a", "/b", "/c"}) progress.see(app, 0, "1", kBegin);
  EXPECT_FALSE(progress.failing(kBegin + 1h));
}

TEST(Progress, WithoutAFailureNothingIsFailing) {
  Progress progress;
  for (int i = 0; i < 10; ++i) progress.see("/web", 0, "", kBegin + i * 1h);
  EXPECT_FALSE(progress.failing(kBegin + 24h)) << "it waits for its place";
}

}  // namespace
}  // namespace drover::cli

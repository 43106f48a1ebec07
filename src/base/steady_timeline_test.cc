#include "base/steady_timeline.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "base/files.h"

namespace drover {
namespace {

using namespace std::chrono_literals;
using Clocks = SteadyTimeline::Clocks;

constexpr TimePoint kNoon{std::chrono::milliseconds(1'700'000'000'000)};

TEST(SteadyTimelineTest, BeginsWithTheSystemsClock) {
  const SteadyTimeline timeline(Clocks{"boot-1", 100s, kNoon}, "");
  EXPECT_EQ(timeline.at(100s), kNoon);
  EXPECT_EQ(timeline.at(3700s), kNoon + 1h);
}

TEST(SteadyTimelineTest, ARestartGoesOnWhateverTheClockWasSetTo) {
  const SteadyTimeline before(Clocks{"boot-1", 100s, kNoon}, "");
  for (const auto set : {-48h, 0h, 2h}) {
    const SteadyTimeline after(Clocks{"boot-1", 160s, kNoon + 60s + set}, before.text());
    EXPECT_EQ(after.at(160s), kNoon + 60s);
    EXPECT_EQ(after.text(), before.text());
  }
}

TEST(SteadyTimelineTest, ABootGoesByTheSystemsClock) {
  const SteadyTimeline before(Clocks{"boot-1", 100s, kNoon}, "");
  const SteadyTimeline after(Clocks{"boot-2", 5s, kNoon + 24h}, before.text());
  EXPECT_EQ(after.at(5s), kNoon + 24h);
}

TEST(SteadyTimelineTest, WhatIsNoTimelineIsNoneEither) {
  for (const char* kept : {"boot-1", "boot-1 ", "boot-1 noon\n", "boot-11 5\n", "\xff"}) {
    const SteadyTimeline timeline(Clocks{"boot-1", 100s, kNoon}, kept);
    EXPECT_EQ(timeline.at(100s), kNoon) << kept;
  }
  EXPECT_EQ(SteadyTimeline(Clocks{"", 100s, kNoon}, " 5\n").at(100s), kNoon) << "of which boot nobody knows";
}

TEST(SteadyTimelineTest, IsKeptInAFile) {
  std::string folder = std::filesystem::temp_directory_path() / "drover-timeline-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const auto path = folder + "/timeline";
  const auto first = SteadyTimeline::resume(path);
  const auto kept = read_file(path);
  ASSERT_TRUE(kept);
  EXPECT_EQ(*kept, first.text());
  EXPECT_EQ(SteadyTimeline::resume(path).text(), first.text());
  EXPECT_LE(first.now(), SteadyTimeline::resume(path).now());
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace drover

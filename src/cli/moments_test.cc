#include "cli/moments.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace drover::cli {
namespace {

/// Midday in Berlin is 11:00 UTC in winter.
class Moments : public ::testing::Test {
 protected:
  void SetUp() override { set_zone("Europe/Berlin"); }
  void TearDown() override { set_zone("UTC"); }

  static void set_zone(const char* zone) {
    ::setenv("TZ", zone, 1);
    ::tzset();
  }

  static std::string since(std::string_view text) { return shown(parse_since(text, kNow)); }
  static std::string begin(std::string_view text) { return shown(parse_begin(text, kNow)); }
  static std::string shown(const Result<TimePoint>& time) {
    return time ? format_time(*time) : time.error().message;
  }

  inline static const TimePoint kNow = *parse_time("2026-11-26T11:00:00.000Z");
};

TEST_F(Moments, AreOfTheZoneOfThisMachine) {
  EXPECT_EQ(since("2026-11-23"), "2026-11-22T23:00:00.000Z");
  EXPECT_EQ(since("2026-11-23 10:00"), "2026-11-23T09:00:00.000Z");
  EXPECT_EQ(since("2026-07-01T10:00:30"), "2026-07-01T08:00:30.000Z") << "in summer";
  EXPECT_EQ(since("2026-11-23T10:00Z"), "2026-11-23T10:00:00.000Z");
  EXPECT_EQ(since("2026-11-23T10:00:00.250Z"), "2026-11-23T10:00:00.250Z");
  EXPECT_EQ(since("2026-11-23T10:00:00.25Z"), "2026-11-23T10:00:00.250Z");
  EXPECT_EQ(since("2026-11-23T10:00:00.xZ"), "'2026-11-23T10:00:00.xZ' is neither a time nor so long ago");
  EXPECT_EQ(since("today"), "2026-11-25T23:00:00.000Z");
}

TEST_F(Moments, DurationsGoBackOrForth) {
  EXPECT_EQ(since("2h"), "2026-11-26T09:00:00.000Z");
  EXPECT_EQ(begin("2h"), "2026-11-26T13:00:00.000Z");
  EXPECT_EQ(begin("now+30m"), "2026-11-26T11:30:00.000Z");
  EXPECT_EQ(begin("now"), "2026-11-26T11:00:00.000Z");
}

TEST_F(Moments, ATimeOfTheDayThatIsOverIsTomorrows) {
  EXPECT_EQ(begin("18:00"), "2026-11-26T17:00:00.000Z");
  EXPECT_EQ(begin("08:00"), "2026-11-27T07:00:00.000Z");
  EXPECT_EQ(begin("noon"), "2026-11-26T11:00:00.000Z");
  EXPECT_EQ(begin("midnight"), "2026-11-26T23:00:00.000Z");
  EXPECT_EQ(begin("tomorrow"), "2026-11-26T23:00:00.000Z");
  EXPECT_EQ(since("08:00"), "2026-11-26T07:00:00.000Z") << "but not that of a past";
}

TEST_F(Moments, WhatIsNoneIsToldWithExamples) {
  EXPECT_EQ(begin("soon"), "'soon' is neither a time nor a duration");
  EXPECT_EQ(since("2026-11-23T"), "'2026-11-23T' is neither a time nor so long ago");
  EXPECT_EQ(since(""), "'' is neither a time nor so long ago");
}

}  // namespace
}  // namespace drover::cli

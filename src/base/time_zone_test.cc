#include "base/time_zone.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdlib>
#include <ctime>
#include <string>

#include "base/posix_zone.h"
#include "base/units.h"

namespace drover {
namespace {

using namespace std::chrono_literals;

const std::vector<std::string> kZones = {
    "Europe/Berlin",    "America/New_York",  "Australia/Lord_Howe", "America/St_Johns",  "Asia/Kathmandu",
    "Pacific/Apia",     "Africa/Casablanca", "Europe/Dublin",       "America/Sao_Paulo", "Asia/Tehran",
    "Antarctica/Troll", "Pacific/Chatham",   "America/Scoresbysund"};

TimeZone zone(const std::string& name) {
  auto found = find_time_zone(name);
  EXPECT_TRUE(found) << name;
  return found.value_or(TimeZone());
}

TimePoint time_of(const std::string& text) {
  return *parse_time(text);
}

WallTime wall_of(const std::string& text) {
  return WallTime(time_of(text).time_since_epoch());
}

/// What the C library says, which reads the same files with its own code.
long offset_of_libc(const std::string& name, std::time_t time) {
  setenv("TZ", name.c_str(), 1);
  tzset();
  std::tm local{};
  localtime_r(&time, &local);
  unsetenv("TZ");
  tzset();
  return local.tm_gmtoff;
}

RC_GTEST_PROP(TimeZoneProperty, AgreesWithTheCLibraryFarIntoTheFuture, ()) {
  const auto name = *rc::gen::elementOf(kZones);
  const auto second = *rc::gen::inRange<std::int64_t>(0, 6'311'433'600);  // 1970 … 2170
  RC_ASSERT(zone(name).offset_at(TimePoint(std::chrono::seconds(second))).count() ==
            offset_of_libc(name, second));
}

RC_GTEST_PROP(TimeZoneProperty, AWallClockLeadsBackToTheFirstMomentThatShowsIt, ()) {
  const auto berlin = zone(*rc::gen::elementOf(kZones));
  const TimePoint time(std::chrono::seconds(*rc::gen::inRange<std::int64_t>(0, 4'102'444'800)));
  const auto back = berlin.from_wall(berlin.to_wall(time));
  RC_ASSERT(back <= time);
  RC_ASSERT(berlin.to_wall(back) == berlin.to_wall(time));
}

TEST(TimeZone, MovesWhatSpringSkipsAndTakesTheFirstOfWhatAutumnRepeats) {
  const auto berlin = zone("Europe/Berlin");
  EXPECT_EQ(berlin.from_wall(wall_of("2026-03-29T02:30:00.000Z")), time_of("2026-03-29T01:30:00.000Z"));
  EXPECT_EQ(berlin.from_wall(wall_of("2026-03-29T03:00:00.000Z")), time_of("2026-03-29T01:00:00.000Z"));
  EXPECT_EQ(berlin.from_wall(wall_of("2026-10-25T02:30:00.000Z")), time_of("2026-10-25T00:30:00.000Z"));
  EXPECT_EQ(berlin.from_wall(wall_of("2026-10-25T03:00:00.000Z")), time_of("2026-10-25T02:00:00.000Z"));
}

TEST(TimeZone, MovesToTheNextDayWhereAWholeDayWasLeftOut) {
  EXPECT_EQ(zone("Pacific/Apia").from_wall(wall_of("2011-12-30T10:00:00.000Z")),
            time_of("2011-12-30T20:00:00.000Z"));
  EXPECT_EQ(zone("Pacific/Apia").from_wall(wall_of("2011-12-31T10:00:00.000Z")),
            time_of("2011-12-30T20:00:00.000Z"));
}

TEST(TimeZone, TakesOffsetsAndShortNames) {
  EXPECT_EQ(zone("+02:00").offset_at({}), 2h);
  EXPECT_EQ(zone("GMT-3").offset_at({}), -3h);
  EXPECT_EQ(zone("-0330").name(), "-03:30");
  EXPECT_EQ(zone("UTC"), TimeZone());
  EXPECT_EQ(zone("PST").offset_at(time_of("2026-07-01T00:00:00.000Z")), -7h);
}

TEST(TimeZone, NamesTheNearestOfAnUnknownOne) {
  const auto found = find_time_zone("Europe/Berlim");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().message, "There is no time zone 'Europe/Berlim'");
  EXPECT_EQ(found.error().hint, "did you mean 'Europe/Berlin'?");
}

TEST(TimeZone, RefusesNamesThatAreNone) {
  for (const auto& name :
       {std::string(), std::string("../etc/passwd"), std::string("/etc/passwd"), std::string("Europe"),
        std::string("zone.tab"), std::string("leapseconds"), std::string("+25:00"), std::string("+1:2:3"),
        std::string(100000, 'x'), std::string("UTC\0", 4), std::string("GMT+"), std::string("\xff\xfe")})
    EXPECT_FALSE(find_time_zone(name)) << name.substr(0, 40);
}

RC_GTEST_PROP(TimeZoneProperty, DamagedFilesAreRefusedOrRead, (const std::string& tail)) {
  auto bytes = "TZif2" + std::string(15, '\0') + tail;
  if (const auto parsed = TimeZone::parse("x", bytes)) (void)parsed->offset_at({});
  for (auto& c : bytes) c = *rc::gen::arbitrary<char>();
  RC_ASSERT(!TimeZone::parse("x", bytes));
}

TEST(PosixZone, KnowsAllKindsOfDays) {
  const auto julian = parse_posix_zone("AAA3BBB,J60/0,J300/0");
  ASSERT_TRUE(julian);
  const auto second = [](const std::string& text) {
    return std::chrono::floor<std::chrono::seconds>(time_of(text)).time_since_epoch().count();
  };
  EXPECT_EQ(julian->offset_at(second("2028-02-29T12:00:00.000Z")), -3h);  // a day that J never counts
  EXPECT_EQ(julian->offset_at(second("2028-03-01T03:00:00.000Z")), -2h);
  const auto zero_based = parse_posix_zone("AAA3BBB,59/0,300/0");
  ASSERT_TRUE(zero_based);
  EXPECT_EQ(zero_based->offset_at(second("2028-02-29T03:00:00.000Z")), -2h);
  EXPECT_EQ(zero_based->offset_at(second("2028-02-29T02:59:59.000Z")), -3h);
}

TEST(PosixZone, RefusesWhatIsDamaged) {
  for (const auto* text : {"", "A", "CET", "CET-1CEST", "CET-1CEST,M3.5.0", "CET-1CEST,M13.5.0,M10.5.0",
                           "CET-1CEST,M3.5.0,M10.5.0x", "<+01", "CET-99"})
    EXPECT_FALSE(parse_posix_zone(text)) << text;
  EXPECT_TRUE(parse_posix_zone("<+01>-1"));
}

}  // namespace
}  // namespace drover

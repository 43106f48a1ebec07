#include "workload/cron.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>
#include <ostream>
#include <set>
#include <string>
#include <vector>

namespace drover::workload {
namespace {

using namespace std::chrono_literals;

/// The wanted times, in UTC, of an expression: all that it has from `from` on, as many as are named.
struct CronCase {
  const char* text;
  const char* zone;
  const char* from;
  std::vector<const char*> times;
};

void PrintTo(const CronCase& wanted, std::ostream* out) {
  *out << wanted.text << " " << wanted.zone << " from " << wanted.from;
}

TimePoint utc(const std::string& minute) {
  return *parse_time(minute + ":00.000Z");
}

class CronTimes : public ::testing::TestWithParam<CronCase> {};

TEST_P(CronTimes, AreTheseInOrder) {
  const auto& wanted = GetParam();
  const auto cron = Cron::parse(wanted.text);
  ASSERT_TRUE(cron) << to_string(cron.error());
  const auto zone = *find_time_zone(wanted.zone);
  auto from = utc(wanted.from);
  for (const auto* time : wanted.times) {
    const auto next = cron->first_not_before(from, zone);
    ASSERT_TRUE(next);
    EXPECT_EQ(format_time(*next), format_time(utc(time))) << wanted.text << " " << wanted.zone;
    from = *next + 1ms;
  }
}

const char* const kFriday = "2026-11-20T12:00";

INSTANTIATE_TEST_SUITE_P(
    Fields, CronTimes,
    ::testing::Values(
        CronCase{"0 2 * * *", "UTC", kFriday, {"2026-11-21T02:00", "2026-11-22T02:00"}},
        CronCase{"*/10 * * * *", "UTC", kFriday, {"2026-11-20T12:00", "2026-11-20T12:10"}},
        CronCase{" 59\t23 31 12  * ", "UTC", kFriday, {"2026-12-31T23:59", "2027-12-31T23:59"}},
        CronCase{"30 8-18/2 * * mon-fri",
                 "UTC",
                 kFriday,
                 {"2026-11-20T12:30", "2026-11-20T14:30", "2026-11-20T16:30", "2026-11-20T18:30",
                  "2026-11-23T08:30"}},
        CronCase{"5,35 9,17 1 jan,JUL *",
                 "UTC",
                 kFriday,
                 {"2027-01-01T09:05", "2027-01-01T09:35", "2027-01-01T17:05", "2027-01-01T17:35",
                  "2027-07-01T09:05"}},
        CronCase{"0 0 * * 7", "UTC", kFriday, {"2026-11-22T00:00", "2026-11-29T00:00"}},
        CronCase{"0 0 * * 0", "UTC", kFriday, {"2026-11-22T00:00", "2026-11-29T00:00"}},
        CronCase{
            "0 0 * * fri-sun", "UTC", kFriday, {"2026-11-21T00:00", "2026-11-22T00:00", "2026-11-27T00:00"}},
        CronCase{"0 0 * * 5-7", "UTC", kFriday, {"2026-11-21T00:00", "2026-11-22T00:00", "2026-11-27T00:00"}},
        CronCase{
            "0 0 31 * *", "UTC", kFriday, {"2026-12-31T00:00", "2027-01-31T00:00", "2027-03-31T00:00"}}));

INSTANTIATE_TEST_SUITE_P(
    Days, CronTimes,
    ::testing::Values(
        // Both restricted: one is enough. One begins with "*": both must hold.
        CronCase{"0 0 13 * fri",
                 "UTC",
                 kFriday,
                 {"2026-11-27T00:00", "2026-12-04T00:00", "2026-12-11T00:00", "2026-12-13T00:00",
                  "2026-12-18T00:00"}},
        CronCase{
            "0 0 */2 * fri", "UTC", kFriday, {"2026-11-27T00:00", "2026-12-11T00:00", "2026-12-25T00:00"}},
        CronCase{"0 0 30 feb mon", "UTC", kFriday, {"2027-02-01T00:00", "2027-02-08T00:00"}},
        CronCase{"0 0 29 2 *", "UTC", kFriday, {"2028-02-29T00:00", "2032-02-29T00:00"}},
        CronCase{"0 0 29 2 *", "UTC", "2096-03-01T00:00", {"2104-02-29T00:00"}},
        CronCase{"0 0 29 2 */7", "UTC", kFriday, {"2032-02-29T00:00", "2060-02-29T00:00"}}));

INSTANTIATE_TEST_SUITE_P(
    Names, CronTimes,
    ::testing::Values(CronCase{"@hourly", "UTC", kFriday, {"2026-11-20T12:00", "2026-11-20T13:00"}},
                      CronCase{"@daily", "UTC", kFriday, {"2026-11-21T00:00", "2026-11-22T00:00"}},
                      CronCase{"@midnight", "UTC", kFriday, {"2026-11-21T00:00", "2026-11-22T00:00"}},
                      CronCase{"@weekly", "UTC", kFriday, {"2026-11-22T00:00", "2026-11-29T00:00"}},
                      CronCase{"@monthly", "UTC", kFriday, {"2026-12-01T00:00", "2027-01-01T00:00"}},
                      CronCase{"@yearly", "UTC", kFriday, {"2027-01-01T00:00", "2028-01-01T00:00"}},
                      CronCase{"@annually", "UTC", kFriday, {"2027-01-01T00:00", "2028-01-01T00:00"}},
                      CronCase{"@daily", "Europe/Berlin", kFriday, {"2026-11-20T23:00"}}));

// 29 March 2026: 02:00 is 03:00, at 01:00 UTC.
INSTANTIATE_TEST_SUITE_P(
    SpringInBerlin, CronTimes,
    ::testing::Values(CronCase{"30 2 * * *",
                               "Europe/Berlin",
                               "2026-03-28T00:00",
                               {"2026-03-28T01:30", "2026-03-29T01:30", "2026-03-30T00:30"}},
                      CronCase{"30 * * * *",
                               "Europe/Berlin",
                               "2026-03-29T00:00",
                               {"2026-03-29T00:30", "2026-03-29T01:30", "2026-03-29T02:30"}},
                      CronCase{"30 2,3 * * *",
                               "Europe/Berlin",
                               "2026-03-29T00:00",
                               {"2026-03-29T01:30", "2026-03-30T00:30", "2026-03-30T01:30"}},
                      CronCase{
                          "*/20 2-3 * * *",
                          "Europe/Berlin",
                          "2026-03-29T00:00",
                          {"2026-03-29T01:00", "2026-03-29T01:20", "2026-03-29T01:40", "2026-03-30T00:00"}},
                      CronCase{"0 */2 * * *",
                               "Europe/Berlin",
                               "2026-03-28T22:30",
                               {"2026-03-28T23:00", "2026-03-29T02:00", "2026-03-29T04:00"}}));

// 25 October 2026: 03:00 is 02:00, at 01:00 UTC.
INSTANTIATE_TEST_SUITE_P(
    AutumnInBerlin, CronTimes,
    ::testing::Values(
        CronCase{"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00", {"2026-10-25T00:30", "2026-10-26T01:30"}},
        CronCase{"30 * * * *",
                 "Europe/Berlin",
                 "2026-10-25T00:00",
                 {"2026-10-25T00:30", "2026-10-25T01:30", "2026-10-25T02:30"}},
        CronCase{"* 2 * * *",
                 "Europe/Berlin",
                 "2026-10-25T00:58",
                 {"2026-10-25T00:58", "2026-10-25T00:59", "2026-10-26T01:00"}},
        CronCase{"0 */2 * * *",
                 "Europe/Berlin",
                 "2026-10-24T22:00",
                 {"2026-10-24T22:00", "2026-10-25T00:00", "2026-10-25T01:00", "2026-10-25T03:00"}},
        CronCase{"0 2-4 * * *",
                 "Europe/Berlin",
                 "2026-10-25T00:00",
                 {"2026-10-25T00:00", "2026-10-25T02:00", "2026-10-25T03:00"}}));

// Half an hour: 4 October 2026, 02:00 (+10:30) is 02:30 (+11); 5 April 2026, 02:00 (+11) is 01:30 (+10:30).
INSTANTIATE_TEST_SUITE_P(
    LordHowe, CronTimes,
    ::testing::Values(CronCase{"15 2 * * *",
                               "Australia/Lord_Howe",
                               "2026-10-02T12:00",
                               {"2026-10-02T15:45", "2026-10-03T15:45", "2026-10-04T15:15"}},
                      CronCase{"0 * * * *",
                               "Australia/Lord_Howe",
                               "2026-10-03T14:00",
                               {"2026-10-03T14:30", "2026-10-03T16:00"}},
                      CronCase{"45 1 * * *",
                               "Australia/Lord_Howe",
                               "2026-04-04T00:00",
                               {"2026-04-04T14:45", "2026-04-05T15:15"}},
                      CronCase{"45 * * * *",
                               "Australia/Lord_Howe",
                               "2026-04-04T14:00",
                               {"2026-04-04T14:45", "2026-04-04T15:15", "2026-04-04T16:15"}}));

// 30 December 2011 was left out as a whole.
INSTANTIATE_TEST_SUITE_P(Apia, CronTimes,
                         ::testing::Values(CronCase{
                             "0 12 * * *",
                             "Pacific/Apia",
                             "2011-12-29T12:00",
                             {"2011-12-29T22:00", "2011-12-30T22:00", "2011-12-31T22:00"}}));

std::string why_not(const std::string& text) {
  const auto cron = Cron::parse(text);
  return cron ? "" : to_string(cron.error());
}

TEST(Cron, SaysWhatIsWrongByField) {
  const std::string example = " (write it as for example 30 2 * * mon-fri)";
  EXPECT_EQ(why_not("60 2 * * *"), "the minute '60' is not between 0 and 59" + example);
  EXPECT_EQ(why_not("0 25 * * *"), "the hour '25' is not between 0 and 23" + example);
  EXPECT_EQ(why_not("0 2 0 * *"), "the day of the month '0' is not between 1 and 31" + example);
  EXPECT_EQ(why_not("0 2 * 13 *"), "the month '13' is not between 1 and 12" + example);
  EXPECT_EQ(why_not("0 2 * * 8"), "the day of the week '8' is not between 0 and 7" + example);
  EXPECT_EQ(why_not("0 2 * * monday"), "the day of the week 'monday' cannot be read" + example);
  EXPECT_EQ(why_not("0 2 * mon *"), "the month 'mon' cannot be read" + example);
  EXPECT_EQ(why_not("1,,2 2 * * *"), "the minute '' cannot be read" + example);
  EXPECT_EQ(why_not("-5 2 * * *"), "the minute '' cannot be read" + example);
  EXPECT_EQ(why_not("*/0 * * * *"), "the step of the minute '0' is not between 1 and 59" + example);
  EXPECT_EQ(why_not("*/90 * * * *"), "the step of the minute '90' is not between 1 and 59" + example);
  EXPECT_EQ(why_not("5/15 * * * *"), "the minute '5/15' has a step and no range (write it as 5-59/15)");
  EXPECT_EQ(why_not("0 18-8 * * *"),
            "the range '18-8' of the hour goes backwards (write it as two of them, with a comma between)");
  EXPECT_EQ(
      why_not("0 0 2 * * *"),
      "it has six fields: cron knows no seconds (leave the first one out; what comes more often than each "
      "minute is written as R//PT30S)");
  EXPECT_TRUE(why_not("0 2 * *").starts_with("it has 4 fields of cron's five: minute, hour,"));
  EXPECT_TRUE(why_not("*").starts_with("it has 1 field of cron's five"));
  EXPECT_EQ(why_not("@reboot"),
            "'@reboot' is not a time: what runs goes on when the daemon starts again (what is to run all the "
            "time is an app)");
  EXPECT_EQ(why_not("@dayly"), "there is no '@dayly' (did you mean '@daily'?)");
  EXPECT_EQ(why_not(std::string(501, '*')), "it is longer than 500 characters" + example);
}

TEST(Cron, WhatNeverComesTrueIsRefused) {
  for (const auto* text : {"0 0 30 2 *", "0 0 31 feb,apr,jun,sep,nov *", "* * 30-31 2 */2"})
    EXPECT_EQ(why_not(text),
              "it never comes true: none of its months has such a day (name another day or month)")
        << text;
  EXPECT_EQ(why_not("0 0 30 2 mon"), "");
  EXPECT_EQ(why_not("0 0 29 2 *"), "");
}

TEST(Cron, EndsWithTheYear9999) {
  const auto cron = *Cron::parse("0 0 1 1 *");
  EXPECT_EQ(cron.first_not_before(utc("9998-06-01T00:00"), {}), utc("9999-01-01T00:00"));
  EXPECT_FALSE(cron.first_not_before(utc("9999-06-01T00:00"), {}));
  EXPECT_FALSE(cron.first_not_before(TimePoint::max(), {}));
}

TEST(Cron, CountsWholeYears) {
  const auto berlin = *find_time_zone("Europe/Berlin");
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  const auto year = [&](const char* text) {
    return Cron::parse(text)->pass(utc("2026-12-31T23:00"), utc("2027-12-31T23:00"), kMost, berlin);
  };
  EXPECT_EQ(year("* * * * *").count, 365 * 24 * 60);
  EXPECT_EQ(year("*/15 0-23 * * *").count, 365 * 24 * 4 - 4) << "an hour of spring falls onto the next";
  EXPECT_EQ(year("30 2 * * *").count, 365);
  EXPECT_EQ(year("0 12 * * mon").count, 52);
  EXPECT_EQ(year("* * * * *").last, utc("2027-12-31T22:59"));
}

/// A field as text, and what it means.
using CronPart = std::pair<std::string, std::set<int>>;

std::set<int> series(int first, int last, int step = 1) {
  std::set<int> values;
  for (int value = first; value <= last; value += step) values.insert(value);
  return values;
}

CronPart any_of(const std::vector<CronPart>& parts) {
  return *rc::gen::elementOf(parts);
}

struct AnyCron {
  CronPart minute = any_of({{"*", series(0, 59)},
                            {"0", {0}},
                            {"30", {30}},
                            {"*/7", series(0, 59, 7)},
                            {"0,15,45", {0, 15, 45}},
                            {"50-59", series(50, 59)},
                            {"1-59/29", {1, 30, 59}}});
  CronPart hour = any_of({{"*", series(0, 23)},
                          {"*/2", series(0, 23, 2)},
                          {"2", {2}},
                          {"0-23", series(0, 23)},
                          {"1,2,3", {1, 2, 3}},
                          {"0", {0}},
                          {"*/23", {0, 23}},
                          {"22-23,0", {0, 22, 23}}});
  CronPart day = any_of({{"*", series(1, 31)},
                         {"*", series(1, 31)},
                         {"*/2", series(1, 31, 2)},
                         {"1", {1}},
                         {"20-31", series(20, 31)}});
  CronPart month =
      any_of({{"*", series(1, 12)}, {"*", series(1, 12)}, {"mar-oct", series(3, 10)}, {"APR,11", {4, 11}}});
  CronPart weekday = any_of(
      {{"*", series(0, 6)}, {"*", series(0, 6)}, {"7", {0}}, {"mon-fri", series(1, 5)}, {"sat-7", {0, 6}}});

  std::string text() const {
    return minute.first + " " + hour.first + " " + day.first + " " + month.first + " " + weekday.first;
  }
  bool is_shown(WallTime wall) const {
    const auto date = std::chrono::floor<std::chrono::days>(wall);
    const std::chrono::year_month_day on(date);
    const std::chrono::hh_mm_ss clock(wall - date);
    const bool on_day = day.second.contains(static_cast<int>(static_cast<unsigned>(on.day())));
    const bool on_weekday =
        weekday.second.contains(static_cast<int>(std::chrono::weekday(date).c_encoding()));
    const bool either = day.first.front() != '*' && weekday.first.front() != '*';
    return minute.second.contains(static_cast<int>(clock.minutes().count())) &&
           hour.second.contains(static_cast<int>(clock.hours().count())) &&
           month.second.contains(static_cast<int>(static_cast<unsigned>(on.month()))) &&
           (either ? on_day || on_weekday : on_day && on_weekday);
  }
  /// Minute by minute, in [from, until): what the clock shows, or what should be shown.
  std::set<TimePoint> scan(TimePoint from, TimePoint until, const TimeZone& zone) const {
    std::set<TimePoint> found;
    if (hour.first.front() == '*') {
      for (auto time = std::chrono::ceil<std::chrono::minutes>(from); time < until; time += 1min)
        if (is_shown(zone.to_wall(time))) found.insert(time);
      return found;
    }
    const auto last = zone.to_wall(until) + 30h;
    for (auto wall = std::chrono::floor<std::chrono::minutes>(zone.to_wall(from) - 30h); wall < last;
         wall += 1min)
      if (is_shown(wall))
        if (const auto time = zone.from_wall(wall); time >= from && time < until) found.insert(time);
    return found;
  }
};

struct CronPlace {
  TimeZone zone = *find_time_zone(*rc::gen::element<std::string>(
      "UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo",
      "Africa/Casablanca", "Asia/Kathmandu", "Pacific/Apia", "Atlantic/Azores"));
  TimePoint time = any_time();

  /// Mostly near a change of the clock.
  TimePoint any_time() const {
    TimePoint near(std::chrono::seconds(*rc::gen::inRange<std::int64_t>(300'000'000, 2'600'000'000)));
    if (zone.name() == "Pacific/Apia" && *rc::gen::arbitrary<bool>()) near = utc("2011-12-30T10:00");
    const bool anywhere = *rc::gen::inRange(0, 4) == 0;
    for (int hour = 0; hour < 24 * 365 && !anywhere; ++hour, near += 1h)
      if (zone.offset_at(near) != zone.offset_at(near + 1h)) break;
    return near + std::chrono::milliseconds(*rc::gen::inRange<std::int64_t>(-100'000'000, 100'000'000));
  }
};

RC_GTEST_PROP(CronProperty, TheFirstIsTheFirstOfAScan, ()) {
  const AnyCron any;
  const CronPlace place;
  const auto cron = Cron::parse(any.text());
  RC_ASSERT(cron.has_value());
  const auto scanned = any.scan(place.time, place.time + 48h, place.zone);
  const auto found = cron->first_not_before(place.time, place.zone);
  RC_ASSERT(found.has_value());
  RC_LOG() << any.text() << " " << place.zone.name() << " " << format_time(place.time) << " found "
           << format_time(*found) << "\n";
  if (scanned.empty()) {
    RC_ASSERT(*found >= place.time + 48h);
  } else {
    RC_ASSERT(*found == *scanned.begin());
  }
}

RC_GTEST_PROP(CronProperty, PassingIsTheSameAsCounting, ()) {
  const AnyCron any;
  const CronPlace place;
  const auto cron = *Cron::parse(any.text());
  const auto until = place.time + std::chrono::minutes(*rc::gen::inRange(-10, 4'000));
  const auto most = *rc::gen::element<std::int64_t>(0, 1, 59, 60, 61, 1'000'000);
  const auto scanned = any.scan(place.time, until, place.zone);
  const auto passed = cron.pass(place.time, until, most, place.zone);
  RC_LOG() << any.text() << " " << place.zone.name() << " " << format_time(place.time) << "\n";
  const auto wanted = std::min<std::int64_t>(most, static_cast<std::int64_t>(scanned.size()));
  RC_ASSERT(passed.count == wanted);
  if (wanted > 0) {
    RC_ASSERT(passed.last == *std::next(scanned.begin(), wanted - 1));
    RC_ASSERT(passed.end > passed.last);
  }
  if (wanted < static_cast<std::int64_t>(scanned.size())) {
    RC_ASSERT(passed.end <= *std::next(scanned.begin(), wanted));
  }
}

RC_GTEST_PROP(CronProperty, AnyTextIsReadOrRefused, (const std::string& text)) {
  for (const auto& input : {text, text + " * * * *", "* * * * " + text, "@" + text}) {
    (void)Cron::is_meant(input);
    if (const auto cron = Cron::parse(input)) {
      RC_ASSERT(cron->first_not_before(TimePoint(), {}).has_value());
    }
  }
}

}  // namespace
}  // namespace drover::workload

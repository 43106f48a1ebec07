#include "workload/repetition.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

namespace drover::workload {
namespace {

using namespace std::chrono_literals;

const TimePoint kNow = *parse_time("2026-11-20T12:00:00.000Z");

Repetition parsed(const std::string& text, const std::string& zone = "") {
  auto repetition = Repetition::parse(text, zone, kNow);
  EXPECT_TRUE(repetition) << to_string(repetition.error());
  return repetition ? *repetition : *Repetition::parse("R0//P1D", "", kNow);
}

std::string message_of(const std::string& text, const std::string& zone = "") {
  const auto repetition = Repetition::parse(text, zone, kNow);
  return repetition ? "" : repetition.error().message;
}

std::vector<std::string> times(const Repetition& repetition, std::int64_t from, int count) {
  std::vector<std::string> texts;
  for (int i = 0; i < count; ++i) {
    const auto at = repetition.at(from + i);
    texts.push_back(at ? format_time(*at) : "none");
  }
  return texts;
}

using Times = std::vector<std::string>;

TEST(Period, ReadsEveryPart) {
  EXPECT_EQ(*parse_period("P1Y2M3W4DT5H6M7.5S"), (Period{14, 25, 5h + 6min + 7s + 500ms}));
  EXPECT_EQ(*parse_period("PT24H"), (Period{0, 0, 24h}));
  EXPECT_EQ(*parse_period("PT1,25S"), (Period{0, 0, 1250ms}));
  EXPECT_EQ(*parse_period("P0DT1S"), (Period{0, 0, 1s}));
  EXPECT_EQ(to_string(*parse_period("P1Y2M3W4DT5H6M7.5S")), "P1Y2M25DT5H6M7.500S");
}

TEST(Period, RefusesWhatIsNone) {
  for (const auto* text : {"",
                           "P",
                           "PT",
                           "P1",
                           "1D",
                           "P1H",
                           "PT1D",
                           "P1D2Y",
                           "P1DT",
                           "P-1D",
                           "P0.5D",
                           "PT0.5H",
                           "P1D1D",
                           "PT1M1H",
                           "P1DT1H ",
                           "p1d",
                           "P1DT1HT1M",
                           "PT.5S",
                           "PT1.S",
                           "P0D",
                           "PT0S",
                           "PT0.999S",
                           "P10001Y",
                           "P99999999999999999999D",
                           "PT999999999999999999S",
                           "P1Y999999999999999M"})
    EXPECT_FALSE(parse_period(text)) << text;
}

RC_GTEST_PROP(PeriodProperty, IsReadBackAsWritten, ()) {
  const Period period{*rc::gen::inRange<std::int64_t>(0, 1000), *rc::gen::inRange<std::int64_t>(0, 1000),
                      std::chrono::milliseconds(*rc::gen::inRange<std::int64_t>(1000, 1'000'000'000))};
  RC_ASSERT(*parse_period(to_string(period)) == period);
}

TEST(Repetition, CountsAsChronosDoes) {
  EXPECT_EQ(times(parsed("R2/2026-11-20T12:00:00Z/PT1H"), 0, 3),
            (Times{"2026-11-20T12:00:00.000Z", "2026-11-20T13:00:00.000Z", "none"}));
  EXPECT_FALSE(parsed("R0/2026-11-20T12:00:00Z/PT1H").at(0));
  EXPECT_TRUE(parsed("R/2026-11-20T12:00:00Z/PT1H").at(1'000'000));
}

TEST(Repetition, WithoutAStartIsDueAtOnce) {
  EXPECT_EQ(parsed("R1//PT1S").at(0), kNow - 1s);
  EXPECT_EQ(parsed("R//P1D", "Europe/Berlin").at(1), kNow - 1s + 24h);
}

TEST(Repetition, TakesTheStartsThatJodaTakes) {
  for (const auto& [text, time] : std::vector<std::pair<std::string, std::string>>{
           {"2018-03-05T23:00:00.000Z", "2018-03-05T23:00:00.000Z"},
           {"2018-03-05T23:00:00+02:00", "2018-03-05T21:00:00.000Z"},
           {"2018-03-05T23:00-0130", "2018-03-06T00:30:00.000Z"},
           {"2018-03-05T23", "2018-03-05T23:00:00.000Z"},
           {"2018-03-05T23:00:00,5Z", "2018-03-05T23:00:00.500Z"},
           {"2018-03-05", "2018-03-05T00:00:00.000Z"},
           {"2018-03", "2018-03-01T00:00:00.000Z"},
           {"2018", "2018-01-01T00:00:00.000Z"}})
    EXPECT_EQ(format_time(*parsed("R/" + text + "/P1D").at(0)), time) << text;
}

TEST(Repetition, ATimeZoneWinsOverTheOffsetOfTheStart) {
  EXPECT_EQ(times(parsed("R/2026-07-01T08:00:00Z/P1D", "America/Los_Angeles"), 0, 1),
            Times{"2026-07-01T15:00:00.000Z"});
}

TEST(Repetition, MonthsCountFromTheStartAndDoNotDrift) {
  EXPECT_EQ(times(parsed("R/2027-01-31T09:00:00Z/P1M"), 0, 4),
            (Times{"2027-01-31T09:00:00.000Z", "2027-02-28T09:00:00.000Z", "2027-03-31T09:00:00.000Z",
                   "2027-04-30T09:00:00.000Z"}));
  EXPECT_EQ(times(parsed("R/2028-02-29T09:00:00Z/P1Y"), 3, 2),
            (Times{"2031-02-28T09:00:00.000Z", "2032-02-29T09:00:00.000Z"}));
}

TEST(Repetition, DaysKeepTheWallClockAndHoursAreExact) {
  EXPECT_EQ(times(parsed("R/2026-03-28T09:00:00/P1D", "Europe/Berlin"), 0, 3),
            (Times{"2026-03-28T08:00:00.000Z", "2026-03-29T07:00:00.000Z", "2026-03-30T07:00:00.000Z"}));
  EXPECT_EQ(times(parsed("R/2026-03-28T09:00:00/PT24H", "Europe/Berlin"), 0, 3),
            (Times{"2026-03-28T08:00:00.000Z", "2026-03-29T08:00:00.000Z", "2026-03-30T08:00:00.000Z"}));
}

TEST(Repetition, SpringAndAutumnRunOnceADay) {
  EXPECT_EQ(times(parsed("R/2026-03-28T02:30:00/P1D", "Europe/Berlin"), 0, 3),
            (Times{"2026-03-28T01:30:00.000Z", "2026-03-29T01:30:00.000Z", "2026-03-30T00:30:00.000Z"}));
  EXPECT_EQ(times(parsed("R/2026-10-24T02:30:00/P1D", "Europe/Berlin"), 0, 3),
            (Times{"2026-10-24T00:30:00.000Z", "2026-10-25T00:30:00.000Z", "2026-10-26T01:30:00.000Z"}));
}

TEST(Repetition, JumpsOverAnyNumberOfPeriods) {
  const auto next = parsed("R/1970-01-01T00:00:00Z/PT1S").first_after(kNow);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->at, kNow + 1s);
  EXPECT_EQ(next->index, kNow.time_since_epoch() / 1s + 1);
  EXPECT_EQ(parsed("R/1970/P1M").first_not_before(kNow)->index, 56 * 12 + 11);
  EXPECT_FALSE(parsed("R5/1970/P1M").first_after(kNow));
}

TEST(Repetition, EndsWithTheYear9999) {
  const auto centuries = parsed("R/2000-01-01T00:00:00Z/P100Y");
  EXPECT_TRUE(centuries.at(79));
  EXPECT_FALSE(centuries.at(80));
  EXPECT_FALSE(centuries.first_after(*centuries.at(79)));
  EXPECT_FALSE(parsed("R/9999-12-31T23:59:59Z/PT1S").at(1));
  EXPECT_FALSE(parsed("R/2026/P9000Y99M9999DT9999H").at(1'000'000'000'000));
}

TEST(Repetition, ShowsWhatIsLeft) {
  const auto three = parsed("R3/2018-03-05T23:00:00Z/PT24H");
  EXPECT_EQ(three.text_from(0), "R3/2018-03-05T23:00:00.000Z/PT24H");
  EXPECT_EQ(three.text_from(2), "R1/2018-03-07T23:00:00.000Z/PT24H");
  EXPECT_EQ(three.text_from(3), "R0/2018-03-07T23:00:00.000Z/PT24H");
  EXPECT_EQ(parsed("R/2026-07-01T08:00:00/P1W", "Europe/Berlin").text_from(1),
            "R/2026-07-08T08:00:00.000+02:00/P1W");
}

TEST(Repetition, SaysWhatIsWrong) {
  EXPECT_EQ(message_of("every day"),
            "Cannot parse schedule 'every day': it does not read R[n]/[start]/period");
  EXPECT_EQ(
      message_of("R/2018-02-30T00:00:00Z/P1D"),
      "Cannot parse schedule 'R/2018-02-30T00:00:00Z/P1D': '2018-02-30T00:00:00Z' is not a date and time");
  EXPECT_EQ(message_of("R//P0D"),
            "Cannot parse schedule 'R//P0D': the period 'P0D' is zero: it would never get on");
  EXPECT_EQ(message_of("R//P1D", "Europe/Berlim"),
            "Cannot parse schedule 'R//P1D': There is no time zone 'Europe/Berlim'");
  EXPECT_EQ(message_of("R/1969-12-31T00:00:00Z/P1D"),
            "Scheduled start date '1969-12-31T00:00:00Z' is before 1970!");
}

TEST(Repetition, RefusesAbsurdities) {
  for (const auto& text :
       {std::string(), std::string("R"), std::string("R/"), std::string("R//"), std::string("//P1D"),
        std::string("R-1//P1D"), std::string("R99999999999999999999//P1D"), std::string("Rx//P1D"),
        std::string("R/2018-03-05T24:00:00Z/P1D"), std::string("R/20180305T230000Z/P1D"),
        std::string("R/12018-03-05/P1D"), std::string("R/2018-3-5/P1D"), std::string("R/ /P1D"),
        std::string("R/2018-03-05T23:00:00ZZ/P1D"), "R/" + std::string(1'000'000, '2') + "/P1D",
        "R//P" + std::string(1'000'000, '1') + "D", std::string("R//P1D\0", 7)}) {
    const auto message = message_of(text);
    EXPECT_TRUE(message.starts_with("Cannot parse schedule '")) << text.substr(0, 50) << ": " << message;
    EXPECT_LT(message.size(), 600U);
  }
}

TEST(Repetition, TakesCronBesideIntervals) {
  const auto nightly = parsed("30 2 * * *", "Europe/Berlin");
  EXPECT_TRUE(nightly.is_cron());
  EXPECT_FALSE(nightly.count());
  EXPECT_EQ(format_time(nightly.first_after(kNow)->at), "2026-11-21T01:30:00.000Z");
  EXPECT_EQ(format_time(nightly.first_not_before(TimePoint())->at), "2026-11-21T01:30:00.000Z")
      << "what was before it was given was never due";
  EXPECT_EQ(nightly.text_from(0), "30 2 * * *");
  EXPECT_EQ(format_time(parsed("30 2 * * *").first_after(kNow)->at), "2026-11-21T02:30:00.000Z") << "UTC";
  EXPECT_FALSE(parsed("R/2026-11-20T12:00:00Z/PT1H").is_cron());
}

TEST(Repetition, SaysWhatIsWrongWithCron) {
  EXPECT_EQ(message_of("0 25 * * *"),
            "Cannot parse schedule '0 25 * * *': the hour '25' is not between 0 and 23");
  EXPECT_EQ(message_of("0 2 * * *", "Europe/Berlim"),
            "Cannot parse schedule '0 2 * * *': There is no time zone 'Europe/Berlim'");
  EXPECT_TRUE(message_of("@reboot").starts_with("Cannot parse schedule '@reboot': '@reboot' is not a time"));
  EXPECT_TRUE(
      message_of("0 0 30 2 *").starts_with("Cannot parse schedule '0 0 30 2 *': it never comes true"));
}

/// What came due, in short: how many are left out, the last of them, how many are there, the first and the
/// last of these, and the next one.
std::vector<std::string> due_of(const Repetition& repetition, TimePoint first, std::chrono::milliseconds late,
                                TimePoint now) {
  const auto due = repetition.due({0, first}, now - late, now, 60);
  std::vector<std::string> words{std::to_string(due.left_out), std::to_string(due.times.size())};
  if (due.left_out > 0) words.push_back(format_time(due.last_left_out));
  if (!due.times.empty()) words.push_back(format_time(due.times.front()));
  if (!due.times.empty()) words.push_back(format_time(due.times.back()));
  words.push_back(due.next.at ? format_time(*due.next.at) : "none");
  return words;
}

TEST(Repetition, SaysWhatCameDueMeanwhile) {
  const auto time = [](const char* text) { return *parse_time(text); };
  const auto now = time("2027-11-20T12:00:30.000Z");
  for (const auto* text : {"R/2026-11-20T12:00:00Z/PT1M", "* * * * *"}) {
    const auto minutely = parsed(text);
    EXPECT_EQ(due_of(minutely, kNow, 1min, now),
              (Times{"525600", "1", "2027-11-20T11:59:00.000Z", "2027-11-20T12:00:00.000Z",
                     "2027-11-20T12:00:00.000Z", "2027-11-20T12:01:00.000Z"}))
        << text;
    EXPECT_EQ(due_of(minutely, kNow, 1000h * 24, now),
              (Times{"525541", "60", "2027-11-20T11:00:00.000Z", "2027-11-20T11:01:00.000Z",
                     "2027-11-20T12:00:00.000Z", "2027-11-20T12:01:00.000Z"}))
        << text;
    EXPECT_EQ(
        due_of(minutely, kNow, 1min, kNow),
        (Times{"0", "1", "2026-11-20T12:00:00.000Z", "2026-11-20T12:00:00.000Z", "2026-11-20T12:01:00.000Z"}))
        << text;
  }
  EXPECT_EQ(due_of(parsed("* * * * *"), kNow + 1min, 1min, kNow),
            (Times{"0", "0", "2026-11-20T12:01:00.000Z"}));
  EXPECT_EQ(due_of(parsed("R2/2026-11-20T12:00:00Z/PT1M"), kNow, 1min, now),
            (Times{"2", "0", "2026-11-20T12:01:00.000Z", "none"}));
}

rc::Gen<std::string> periods() {
  return rc::gen::element<std::string>("PT1S", "PT1M", "PT90.5S", "PT24H", "P1D", "P1W", "P1M", "P1Y",
                                       "P1M1DT1H", "P3DT12H", "P1Y6M", "P10D", "P7M");
}

rc::Gen<std::string> zones() {
  return rc::gen::element<std::string>("", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe",
                                       "Pacific/Apia", "America/Sao_Paulo", "Africa/Casablanca",
                                       "Asia/Kathmandu");
}

Repetition any_repetition() {
  const TimePoint start(std::chrono::seconds(*rc::gen::inRange<std::int64_t>(100'000, 2'000'000'000)));
  return parsed("R/" + format_time(start) + "/" + *periods(), *zones());
}

RC_GTEST_PROP(RepetitionProperty, NeverGoesBack, ()) {
  const auto repetition = any_repetition();
  const auto index = *rc::gen::inRange<std::int64_t>(0, 1000);
  RC_ASSERT(*repetition.at(index) <= *repetition.at(index + 1));
}

RC_GTEST_PROP(RepetitionProperty, JumpingIsTheSameAsStepping, ()) {
  const auto repetition = any_repetition();
  const auto from = *rc::gen::inRange<std::int64_t>(0, 2000);
  const auto wanted =
      *repetition.at(from) + std::chrono::milliseconds(*rc::gen::inRange(-100'000'000, 100'000'000));
  std::int64_t stepped = 0;
  while (*repetition.at(stepped) <= wanted) ++stepped;
  const auto jumped = repetition.first_after(wanted);
  RC_ASSERT(jumped.has_value());
  RC_ASSERT(jumped->index == stepped);
  RC_ASSERT(jumped->at > wanted);
  RC_ASSERT(jumped->at == *repetition.at(jumped->index));
  RC_ASSERT(repetition.first_not_before(wanted)->at >= wanted);
}

RC_GTEST_PROP(RepetitionProperty, ADailyRunKeepsItsTimeOnTheClock, ()) {
  const auto name = *zones();
  const auto zone = name.empty() ? TimeZone() : *find_time_zone(name);
  const TimePoint start(std::chrono::minutes(*rc::gen::inRange<std::int64_t>(2'000, 35'000'000)));
  const auto repetition = parsed("R/" + format_time(start) + "/P1D", name);
  const auto index = *rc::gen::inRange<std::int64_t>(0, 20'000);
  const WallTime wanted(start.time_since_epoch() + std::chrono::days(index));
  const auto shown = zone.to_wall(*repetition.at(index));
  // Where the clock skips that time, the run is later by no more than what is skipped.
  if (shown != wanted) {
    RC_ASSERT(shown > wanted);
    RC_ASSERT(shown - wanted <= 24h);
    RC_ASSERT(zone.to_wall(zone.from_wall(wanted)) != wanted);
  }
}

TEST(Repetition, FarDatesAreShownAsTheyAre) {
  for (const auto* text : {"R/4060-01-01T00:00:00.000Z/P1D", "R2/9999-12-30T00:00:00.000Z/P1D"})
    EXPECT_EQ(parsed(text, "").text_from(0), text);
}

RC_GTEST_PROP(RepetitionProperty, WhatIsShownIsReadBack, ()) {
  const auto repetition = any_repetition();
  const auto index = *rc::gen::inRange<std::int64_t>(0, 100);
  const auto again = Repetition::parse(repetition.text_from(index), repetition.zone().name(), kNow);
  RC_ASSERT(again.has_value());
  RC_ASSERT(*again->at(0) <= *repetition.at(index));
  RC_ASSERT(*again->at(0) >= *repetition.at(index) - 24h);
}

RC_GTEST_PROP(RepetitionProperty, AnyTextIsReadOrRefused, (const std::string& text)) {
  for (const auto& input : {text, "R" + text, "R/" + text + "/P1D", "R//P" + text})
    if (const auto repetition = Repetition::parse(input, "", kNow)) (void)repetition->first_after(kNow);
}

}  // namespace
}  // namespace drover::workload

#include "base/units.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace drover {
namespace {

using namespace std::chrono_literals;

TEST(Units, ReadsSizes) {
  EXPECT_EQ(parse_bytes("512"), 512u);
  EXPECT_EQ(parse_bytes("64k"), 65536u);
  EXPECT_EQ(parse_bytes("1.5GiB"), 3ULL << 29);
  EXPECT_EQ(parse_bytes("2 GB"), 2'000'000'000u);
  for (const char* bad : {"", "GiB", "-1", "1x", "1e5", "nan", "inf", "99999999T"})
    EXPECT_FALSE(parse_bytes(bad)) << bad;
}

TEST(Units, WritesSizes) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(11441ULL << 20), "11.2 GiB");
  EXPECT_EQ(format_bytes(80ULL << 30), "80 GiB");
}

TEST(Units, WritesDurationsThatCanBeReadAgain) {
  EXPECT_EQ(exact_duration(90min), "1h30m");
  EXPECT_EQ(exact_duration(10s), "10s");
  EXPECT_EQ(exact_duration(0s), "0s");
  EXPECT_TRUE(rc::check([](std::uint32_t any) {
    RC_ASSERT(parse_duration(exact_duration(std::chrono::milliseconds(any))) ==
              std::chrono::milliseconds(any));
  }));
}

TEST(Units, TellsHowFarSomethingHasCome) {
  EXPECT_EQ(format_part(12ULL << 20, 40ULL << 20), "12 of 40 MiB");
  EXPECT_EQ(format_part(0, 40ULL << 20), "0 of 40 MiB");
  EXPECT_EQ(format_part(512ULL << 20, 3ULL << 30), "0.5 of 3 GiB");
  EXPECT_EQ(format_part(12ULL << 20, 0), "12 MiB");
}

TEST(Units, ReadsDurations) {
  EXPECT_EQ(parse_duration("90"), 90s);
  EXPECT_EQ(parse_duration("1h30m"), 90min);
  EXPECT_EQ(parse_duration("500ms"), 500ms);
  EXPECT_EQ(parse_duration("1.5s"), 1500ms);
  for (const char* bad : {"", "h", "1y", "-1s", "1h30x", "99999999999999d"})
    EXPECT_FALSE(parse_duration(bad)) << bad;
}

TEST(Units, ReadsCpus) {
  EXPECT_EQ(parse_milli_cpus("0.5"), 500);
  EXPECT_EQ(parse_milli_cpus("4"), 4000);
  for (const char* bad : {"", "0", "x", "1x", "-1", "1e9"}) EXPECT_FALSE(parse_milli_cpus(bad)) << bad;
}

TEST(Units, TimesReadBack) {
  EXPECT_TRUE(rc::check([](std::uint32_t seconds) {
    const TimePoint time{std::chrono::milliseconds(seconds * 1000ULL + seconds % 1000)};
    const auto read_back = parse_time(format_time(time));
    RC_ASSERT(read_back.has_value());
    RC_ASSERT(*read_back == time);
  }));
  EXPECT_EQ(format_time(TimePoint(1520290800000ms)), "2018-03-05T23:00:00.000Z");
  EXPECT_EQ(format_time(TimePoint(1ms)), "1970-01-01T00:00:00.001Z");
  EXPECT_EQ(format_time(TimePoint(-1ms)), "1969-12-31T23:59:59.999Z");
  EXPECT_EQ(format_time(TimePoint(253402300799999ms)), "9999-12-31T23:59:59.999Z");
  EXPECT_EQ(format_time(TimePoint(253402300800000ms)), "10000-01-01T00:00:00.000Z");
  for (const char* bad : {"", "2018-02-30T00:00:00.000Z", "2018-03-05T24:00:00.000Z",
                          "2018-03-05T23:00:00.000Zx", "2018-03-05T23:60:00.000Z", "2018-03-05T23:00:61.000Z",
                          "2018-13-05T23:00:00.000Z", "2018-3-05T023:00:00.000Z", " 2018-03-05T23:00:00.000",
                          "2018-03-05T23:00:00.000z", "-018-03-05T23:00:00.000Z", "2018-03-05T23:00:00Z"})
    EXPECT_FALSE(parse_time(bad)) << bad;
}

TEST(Units, SpacesAreBetweenNumbersAndUnitsAndNotInNumbers) {
  EXPECT_EQ(parse_duration(" 1 h  30 m "), 90min);
  EXPECT_EQ(parse_bytes("16 GiB"), 16ULL << 30);
  for (const auto* bad : {"1 0s", "1 .5s", "1. 5h", "10 m 3 0s"}) EXPECT_FALSE(parse_duration(bad)) << bad;
  for (const auto* bad : {"1 6GiB", "5 12"}) EXPECT_FALSE(parse_bytes(bad)) << bad;
}

}  // namespace
}  // namespace drover

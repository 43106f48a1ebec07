#include "base/instant.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace drover {
namespace {

using std::chrono::milliseconds;

TEST(ParseInstant, TakesAllTextsOfOneMoment) {
  const TimePoint moment(milliseconds(1520290800810));  // 2018-03-05T23:00:00.810Z
  for (const auto* text :
       {"2018-03-05T23:00:00.810Z", "2018-03-05T23:00:00.81Z", "2018-03-05T23:00:00.810+00:00",
        "2018-03-05T23:00:00.810999Z", "2018-03-06T00:00:00.810+01:00", "2018-03-05T19:30:00.810-0330",
        "2018-03-05T22:00:00.810-01"})
    EXPECT_EQ(parse_instant(text), moment) << text;
  EXPECT_EQ(parse_instant("2018-03-05T23:00:00Z"), moment - milliseconds(810));
}

TEST(ParseInstant, RefusesWhatIsNone) {
  for (const auto* text :
       {"", "x", "2018-03-05", "2018-03-05T23:00:00", "2018-03-05T23:00:00.Z", "2018-03-05T23:00:00.810",
        "2018-03-05T23:00:00.810z", "2018-03-05T23:00:00.810+1", "2018-03-05T23:00:00.810+1:000",
        "2018-13-05T23:00:00.810Z", "2018-03-05T23:00:00.810ZZ", "2018-03-05T23:00:00.810+a0:00",
        "2018-03-05 23:00:00.810Z", "2018-03-05T23:00:00.810+100", "2018-03-05T23:00:00.810+1:00",
        "2018-03-05T23:00:00.810+24:00", "2018-03-05T23:00:00.810 00:00"})
    EXPECT_FALSE(parse_instant(text)) << text;
}

RC_GTEST_PROP(ParseInstant, ReadsWhatDroverWrites, ()) {
  const TimePoint time(milliseconds(*rc::gen::inRange<std::int64_t>(0, 253402300799999)));
  RC_ASSERT(parse_instant(format_time(time)) == time);
}

}  // namespace
}  // namespace drover

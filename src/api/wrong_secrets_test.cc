#include "api/wrong_secrets.h"

#include <gtest/gtest.h>

namespace drover::api {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

TEST(WrongSecrets, AreToldWithTheirAddressAndNotTooOften) {
  WrongSecrets wrong;
  const WrongSecrets::Time start{};
  EXPECT_EQ(wrong.note("10.0.0.5", start), "A wrong secret came from 10.0.0.5");
  for (int i = 0; i < 7; ++i) EXPECT_EQ(wrong.note("10.0.0.5", start + seconds(i)), std::nullopt);
  EXPECT_EQ(wrong.note("::1", start + seconds(8)), "A wrong secret came from ::1");
  EXPECT_EQ(wrong.note("10.0.0.5", start + minutes(1)),
            "A wrong secret came from 10.0.0.5, and 7 before it that were not told");
  EXPECT_EQ(wrong.note("10.0.0.5", start + minutes(5)), "A wrong secret came from 10.0.0.5");
}

TEST(WrongSecrets, AreToldAlsoWhenMoreAddressesTryThanAreKept) {
  WrongSecrets wrong;
  for (int i = 0; i < 2000; ++i)
    EXPECT_TRUE(wrong.note("fe80::" + std::to_string(i), WrongSecrets::Time{})) << i;
  EXPECT_EQ(wrong.note("fe80::0", WrongSecrets::Time{}), std::nullopt);
}

}  // namespace
}  // namespace drover::api

#include "api/answer_shares.h"

#include <gtest/gtest.h>

namespace drover::api {
namespace {

using namespace std::chrono_literals;
using Clock = AnswerShares::Clock;

constexpr uid_t kGreedy = 1001;
constexpr uid_t kOther = 1002;

TEST(AnswerShares, WhoDoesNotReadWaitsUntilHeHas) {
  AnswerShares shares(1000);
  const Clock::time_point now{1h};
  auto answer = shares.begin(kGreedy, 1001, now);
  EXPECT_GT(shares.wait(kGreedy, now), 0s);
  EXPECT_GT(shares.wait(kGreedy, now + 1h), 0s) << "time alone frees no memory";
  EXPECT_EQ(shares.wait(kOther, now), 0s);
  answer.reset();
  EXPECT_EQ(shares.unsent(kGreedy), 0U);
  EXPECT_EQ(shares.wait(kGreedy, now + 1h), 0s);
}

TEST(AnswerShares, WhoReadsAtOnceHasAShareOfEachSecond) {
  AnswerShares shares(1000);
  const Clock::time_point now{1h};
  shares.begin(kGreedy, 900, now).reset();
  EXPECT_EQ(shares.wait(kGreedy, now), 0s);
  shares.begin(kGreedy, 2100, now).reset();
  EXPECT_EQ(shares.wait(kGreedy, now), 2s);
  EXPECT_EQ(shares.wait(kGreedy, now + 1s), 1s);
  EXPECT_EQ(shares.wait(kOther, now), 0s);
  EXPECT_EQ(shares.wait(kGreedy, now + 2s), 0s);
}

TEST(AnswerShares, AnEmptyAnswerIsNone) {
  AnswerShares shares(1000);
  const Clock::time_point now{1h};
  const auto empty = shares.begin(kGreedy, 0, now);
  EXPECT_EQ(empty, nullptr);
  EXPECT_EQ(shares.wait(kGreedy, now), 0s);
}

}  // namespace
}  // namespace drover::api

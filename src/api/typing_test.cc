#include "api/typing.h"

#include <gtest/gtest.h>

namespace drover::api {
namespace {

TEST(Typing, IsToldToWhoFollowsThatTaskAsLongAsHeDoes) {
  auto typing = std::make_unique<Typing>();
  int first = 0, second = 0, other = 0;
  const auto follower = typing->listen("t", [&] { ++first; });
  auto leaving = typing->listen("t", [&] { ++second; });
  const auto another = typing->listen("u", [&] { ++other; });
  typing->typed("t");
  leaving.reset();
  typing->typed("t");
  typing->typed("nobody's");
  EXPECT_EQ(first, 2);
  EXPECT_EQ(second, 1);
  EXPECT_EQ(other, 0);
  typing.reset();  // before its followers, when the daemon ends
}

}  // namespace
}  // namespace drover::api

#include "api/marathon/event_hub.h"

#include <gtest/gtest.h>

namespace drover::api::marathon_v2 {
namespace {

WireEvent event(const char* type, std::optional<uid_t> owner = std::nullopt, std::size_t bytes = 1) {
  return {type, owner, std::make_shared<const std::string>(bytes, 'x')};
}

engine::Caller user(uid_t uid) {
  engine::Caller caller;
  caller.user.uid = uid;
  return caller;
}

TEST(Follower, HearsOfWhatIsHisAndOfWhatHeAskedFor) {
  int woken = 0;
  Follower ann(user(1000), {"a", "b"}, [&] { ++woken; });
  ann.offer(event("a", 1001));
  ann.offer(event("c", 1000));
  EXPECT_EQ(ann.take(), nullptr);
  EXPECT_EQ(woken, 0);
  ann.offer(event("a", 1000));
  ann.offer(event("b"));
  EXPECT_EQ(woken, 2);
  EXPECT_NE(ann.take(), nullptr);
  EXPECT_NE(ann.take(), nullptr);
  Follower root(user(0), {}, [] {});
  root.offer(event("c", 1000));
  EXPECT_NE(root.take(), nullptr);
}

TEST(Follower, SharesTheTextAndIsCutWhenItDoesNotRead) {
  Follower follower(user(0), {}, [] {});
  const auto big = event("a", std::nullopt, kMostWaitingBytes / 4);
  follower.offer(big);
  EXPECT_EQ(follower.take(), big.text) << "one text for all";
  for (int i = 0; i < 4; ++i) follower.offer(big);
  EXPECT_FALSE(follower.cut());
  follower.offer(big);
  EXPECT_TRUE(follower.cut());
  EXPECT_EQ(follower.take(), nullptr) << "nothing is kept for it";
  EXPECT_EQ(big.text.use_count(), 1);
  Follower slow(user(0), {}, [] {});
  for (std::size_t i = 0; i <= kMostWaitingEvents; ++i) slow.offer(event("a"));
  EXPECT_TRUE(slow.cut());
}

}  // namespace
}  // namespace drover::api::marathon_v2

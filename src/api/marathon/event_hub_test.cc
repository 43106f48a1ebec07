#include "api/marathon/event_hub.h"

#include <gtest/gtest.h>

#include "api/testing/fake_daemon.h"

namespace drover::api::marathon_v2 {
namespace {

constexpr std::size_t kAll = SIZE_MAX;

WireEvent event(const char* type, std::optional<uid_t> owner = std::nullopt, std::string text = "x") {
  return {type, owner, std::move(text)};
}

engine::Caller user(uid_t uid) {
  engine::Caller caller;
  caller.user.uid = uid;
  return caller;
}

void publish(EventLog& log, const std::vector<Follower*>& followers, WireEvent event) {
  log.add(std::move(event));
  for (auto* follower : followers) follower->on_event(log.end() - 1);
}

TEST(Follower, HearsOfWhatIsHisAndOfWhatHeAskedFor) {
  EventLog log;
  int woken = 0;
  Follower ann(log, user(1000), {"a", "b"}, [&] { ++woken; });
  publish(log, {&ann}, event("a", 1001));
  publish(log, {&ann}, event("c", 1000));
  EXPECT_EQ(woken, 0);
  EXPECT_EQ(ann.next(), 2U) << "what she does not want is kept for others only";
  publish(log, {&ann}, event("a", 1000, "1"));
  publish(log, {&ann}, event("a", 1001, "2"));
  publish(log, {&ann}, event("b", std::nullopt, "3"));
  EXPECT_EQ(woken, 2);
  EXPECT_EQ(ann.take(kAll), "13");
  EXPECT_EQ(ann.take(kAll), "");
  EXPECT_EQ(ann.next(), log.end());
}

TEST(Follower, RootHearsOfAllFromNowOn) {
  EventLog log;
  log.add(event("a", 1000, "before"));
  Follower root(log, user(0), {}, [] {});
  root.greet(event("hello", std::nullopt, "hello "));
  publish(log, {&root}, event("c", 1000, "after"));
  EXPECT_EQ(root.take(kAll), "hello after");
}

TEST(Follower, TakesNoMoreAtOnceThanItIsAllowed) {
  EventLog log;
  Follower follower(log, user(0), {}, [] {});
  for (const auto* text : {"aaaa", "bbbb", "cccc"}) publish(log, {&follower}, event("a", std::nullopt, text));
  EXPECT_EQ(follower.take(5), "aaaabbbb");
  EXPECT_EQ(follower.take(5), "cccc");
}

TEST(Follower, IsCutWhenItIsLeftBehind) {
  EventLog log;
  Follower slow(log, user(0), {}, [] {}), rare(log, user(0), {"rare"}, [] {});
  const std::string big(kMostWaitingBytes / 4, 'x');
  for (int i = 0; i < 4; ++i) publish(log, {&slow, &rare}, event("a", std::nullopt, big));
  EXPECT_FALSE(slow.cut());
  publish(log, {&slow, &rare}, event("a", std::nullopt, big));
  EXPECT_TRUE(slow.cut());
  EXPECT_EQ(slow.take(kAll), "");
  EXPECT_FALSE(rare.cut()) << "nothing that it waits for was lost";
  Follower late(log, user(0), {}, [] {});
  for (std::size_t i = 0; i <= kMostWaitingEvents; ++i) publish(log, {&late}, event("a"));
  EXPECT_TRUE(late.cut());
  EXPECT_EQ(log.end() - log.begin(), kMostWaitingEvents);
}

/// A slow one costs nothing of its own, and what all have read is kept no longer.
TEST(EventHub, KeepsOneTextForAllUntilAllHaveIt) {
  testing::TemporaryFolder folder;
  testing::FakeDaemon daemon(folder.path());
  EventHub hub(daemon);
  int woken = 0;
  auto quick = hub.follow(user(0), {"group_change_failed"}, [&] { ++woken; });
  auto slow = hub.follow(user(0), {"group_change_failed"}, [] {});
  for (int i = 0; i < 10; ++i) {
    hub.publish_failed(0, {"/web"}, "locked");
    EXPECT_NE(quick->take(kAll), "");
  }
  EXPECT_EQ(woken, 10);
  EXPECT_EQ(slow->next() + 10, quick->next());
  const auto all = slow->take(kAll);
  std::size_t count = 0;
  for (auto at = all.find("event: "); at != all.npos; at = all.find("event: ", at + 1)) ++count;
  EXPECT_EQ(count, 10U);
}

}  // namespace
}  // namespace drover::api::marathon_v2

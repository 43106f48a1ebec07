#include "api/identities.h"

#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <condition_variable>
#include <functional>
#include <mutex>

namespace drover::api {
namespace {

namespace asio = boost::asio;

User user(uid_t uid) {
  return {uid, uid, {}, "user" + std::to_string(uid), "/"};
}

class IdentitiesTest : public ::testing::Test {
 protected:
  /// The answers to questions that are asked one beside the other.
  std::vector<Result<User>> ask(Identities& identities, const std::vector<uid_t>& uids) {
    std::vector<std::future<Result<User>>> answers;
    for (const auto uid : uids)
      answers.push_back(asio::co_spawn(context_, identities.of_peer(uid, uid), asio::use_future));
    context_.restart();
    context_.run();
    std::vector<Result<User>> results;
    for (auto& answer : answers) results.push_back(answer.get());
    return results;
  }
  IdentityOptions options() {
    IdentityOptions options;
    options.by_uid = [this](uid_t uid, gid_t) -> Result<User> {
      ++asked_;
      return failing_ ? Result<User>(fail(ErrorKind::kUnavailable, "the database is down")) : user(uid);
    };
    return options;
  }

  asio::io_context context_{1};
  std::atomic<int> asked_ = 0;
  std::atomic<bool> failing_ = false;
};

TEST_F(IdentitiesTest, AnAnswerIsKept) {
  Identities identities(context_, options());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ask(identities, {1001}).front().value(), user(1001));
  EXPECT_EQ(asked_, 1);
}

TEST_F(IdentitiesTest, AnOldAnswerIsAskedForAgain) {
  auto given = options();
  given.kept = std::chrono::milliseconds(-1);
  Identities identities(context_, given);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(ask(identities, {1001}).front());
  EXPECT_EQ(asked_, 3);
}

TEST_F(IdentitiesTest, ManyWhoWantTheSameAskOnce) {
  Identities identities(context_, options());
  for (const auto& answer : ask(identities, std::vector<uid_t>(50, 1001)))
    EXPECT_EQ(answer.value(), user(1001));
  EXPECT_EQ(asked_, 1);
}

TEST_F(IdentitiesTest, AnErrorIsNobodyAndIsNotKept) {
  Identities identities(context_, options());
  failing_ = true;
  EXPECT_EQ(ask(identities, {1001}).front().error().kind, ErrorKind::kUnavailable);
  failing_ = false;
  EXPECT_EQ(ask(identities, {1001}).front().value(), user(1001));
}

TEST_F(IdentitiesTest, RootIsRootWithoutTheDatabase) {
  Identities identities(context_, options());
  failing_ = true;
  EXPECT_EQ(ask(identities, {0}).front().value(), (User{0, 0, {}, "root", "/root"}));
}

TEST_F(IdentitiesTest, ADatabaseThatHangsForOneAnswersOthers) {
  std::mutex mutex;
  std::condition_variable changed;
  bool hangs = true;
  auto given = options();
  given.patience = std::chrono::milliseconds(200);
  given.by_uid = [&](uid_t uid, gid_t) -> Result<User> {
    std::unique_lock lock(mutex);
    if (uid == 1001) changed.wait(lock, [&] { return !hangs; });
    return user(uid);
  };
  Identities identities(context_, given);
  std::jthread mend([&, this] {
    // Whoever has waited in vain has been told so by then: nothing else lets the context run dry.
    while (asked_ == 0) std::this_thread::yield();
    const std::lock_guard lock(mutex);
    hangs = false;
    changed.notify_all();
  });
  std::optional<Result<User>> hung;
  std::vector<Result<User>> others;
  const auto ask_both = [&]() -> asio::awaitable<void> {
    hung = co_await identities.of_peer(1001, 1001);
    for (const uid_t uid : {1002, 0}) others.push_back(co_await identities.of_peer(uid, uid));
    ++asked_;
  };
  asio::co_spawn(context_, ask_both(), [](const std::exception_ptr& failure) { ASSERT_FALSE(failure); });
  context_.run();
  ASSERT_TRUE(hung);
  EXPECT_EQ(hung->error().kind, ErrorKind::kUnavailable);
  ASSERT_EQ(others.size(), 2u);
  EXPECT_EQ(others[0].value(), user(1002));
  EXPECT_EQ(others[1].value(), user(0));
}

}  // namespace
}  // namespace drover::api

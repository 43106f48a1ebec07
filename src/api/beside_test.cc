#include "api/beside.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "api/answer_shares.h"
#include "api/testing/gate.h"
#include "api/workers.h"

namespace drover::api {
namespace {

using testing::Gate;

constexpr std::uint64_t kShare = 1000;
const engine::Caller kAlice{User{.uid = 1001, .name = "alice"}};
const engine::Caller kBob{User{.uid = 1002, .name = "bob"}};

class BesideTest : public ::testing::Test {
 protected:
  BesideTest() {
    services_.workers = &workers_;
    services_.answers = &shares_;
  }

  /// `done(answer)` is called on the strand.
  template <typename Done>
  void answer(const engine::Caller& caller, Write write, Done done) {
    asio::co_spawn(context_, write_beside(services_, caller, std::move(write)),
                   [done](std::exception_ptr failure, Result<Response> answer) {
                     ASSERT_FALSE(failure);
                     done(std::move(answer));
                   });
  }
  static Write of(std::string body) {
    return [body]() -> Result<Response> { return Response{.body = body}; };
  }

  boost::asio::io_context context_{1};
  AnswerShares shares_{kShare};
  Services services_;
  Workers workers_{context_};
};

TEST_F(BesideTest, TheStrandGoesOnWhileAnAnswerIsWritten) {
  Gate gate;
  std::vector<std::string> order;
  answer(
      kAlice,
      [&]() -> Result<Response> {
        gate.pass();
        return Response{.body = "alice's"};
      },
      [&](auto answer) { order.push_back(answer->body); });
  answer(kBob, of("bob's"), [&](auto answer) {
    order.push_back(answer->body);
    gate.open();
  });
  context_.run();
  EXPECT_EQ(order, (std::vector<std::string>{"bob's", "alice's"}));
}

TEST_F(BesideTest, AnErrorIsTheAnswer) {
  answer(
      kAlice, []() -> Result<Response> { return fail(ErrorKind::kNotFound, "It is not there"); },
      [](auto answer) {
        ASSERT_FALSE(answer);
        EXPECT_EQ(answer.error().kind, ErrorKind::kNotFound);
      });
  context_.run();
}

/// Many answers may be asked for before the first of them is written.
TEST_F(BesideTest, NoneIsWrittenForWhomTooMuchIsOnItsWayTo) {
  int written = 0;
  const auto write = [&]() -> Result<Response> {
    ++written;
    return Response{.body = std::string(kShare + 1, 'x')};
  };
  std::shared_ptr<void> unread;
  boost::asio::steady_timer until_read(context_);
  answer(kAlice, write, [&](auto answer) {
    unread = answer->share;
    EXPECT_EQ(shares_.unsent(kAlice.user.uid), kShare + 1);
    until_read.expires_after(std::chrono::milliseconds(50));
    until_read.async_wait([&](auto) {
      EXPECT_EQ(written, 1);
      unread.reset();
    });
  });
  answer(kAlice, write, [&](auto) { EXPECT_EQ(unread, nullptr); });
  context_.run();
  EXPECT_EQ(written, 2);
}

/// It may be much, and the strand is not to be held by freeing it.
TEST_F(BesideTest, WhatAnAnswerIsWrittenFromIsFreedWhereItWasUsed) {
  std::thread::id freed;
  auto used = std::shared_ptr<int>(new int, [&](const int* value) {
    delete value;
    freed = std::this_thread::get_id();
  });
  answer(kAlice, [used = std::move(used)]() -> Result<Response> { return Response{}; }, [](auto) {});
  context_.run();
  EXPECT_NE(freed, std::thread::id());
  EXPECT_NE(freed, std::this_thread::get_id());
}

}  // namespace
}  // namespace drover::api

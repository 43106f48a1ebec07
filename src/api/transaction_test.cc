#include "api/transaction.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <stdexcept>

#include "api/testing/fake_daemon.h"

namespace drover::api {
namespace {

class TransactionTest : public ::testing::Test {
 protected:
  template <typename Run, typename T = std::invoke_result_t<Run&>>
  T in_turn(Run run) {
    boost::asio::io_context context;
    auto result = boost::asio::co_spawn(context, in_transaction(daemon_, run), boost::asio::use_future);
    context.run();
    return result.get();
  }
  Result<control::Made> subscribe(const std::string& id) {
    return daemon_.change(control::event::FrameworkSubscribed{id, {}});
  }
  bool knows(const std::string& id) { return daemon_.state().frameworks.contains(id); }

  testing::TemporaryFolder folder_;
  testing::FakeDaemon daemon_{folder_.path()};
};

TEST_F(TransactionTest, AnswersWhatRunReturnsOrThatItIsNotKept) {
  EXPECT_EQ(in_turn([&] { return subscribe("one"); })->id, "one");
  daemon_.journal_is_full = true;
  const auto refused = in_turn([&] { return subscribe("two"); });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kExhausted);
  EXPECT_TRUE(knows("one"));
  EXPECT_FALSE(knows("two"));
  EXPECT_TRUE(in_turn([&]() -> Status { return {}; })) << "nothing was to be kept";
}

TEST_F(TransactionTest, WhatIsThrownIsThrownAtTheOneWhoAsked) {
  const auto throwing = [&]() -> Status { throw std::runtime_error("broken"); };
  EXPECT_THROW(in_turn(throwing), std::runtime_error);
  EXPECT_TRUE(in_turn([&] { return subscribe("one"); })) << "others go on";
  EXPECT_TRUE(knows("one"));
}

}  // namespace
}  // namespace drover::api

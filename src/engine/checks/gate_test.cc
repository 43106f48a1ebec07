#include "engine/checks/gate.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <string>
#include <vector>

namespace drover::engine {
namespace {

constexpr uid_t kMallory = 1001;
constexpr uid_t kVictim = 1002;

class GateTest : public ::testing::Test {
 protected:
  void come(uid_t user, std::string name) {
    boost::asio::co_spawn(
        context_,
        [](GateTest& self, uid_t who, std::string what) -> boost::asio::awaitable<void> {
          co_await self.gate_.enter(who);
          self.inside_.push_back(std::move(what));
        }(*this, user, std::move(name)),
        boost::asio::detached);
    run();
  }
  void leave(uid_t user) {
    gate_.leave(user);
    run();
  }
  void run() {
    context_.restart();
    context_.poll();
  }

  using Names = std::vector<std::string>;
  boost::asio::io_context context_;
  Gate gate_{{3, 2}};
  Names inside_;
};

TEST_F(GateTest, OneUserDoesNotTakeAllPlaces) {
  for (const auto* name : {"m1", "m2", "m3", "m4"}) come(kMallory, name);
  come(kVictim, "v1");
  EXPECT_EQ(inside_, (Names{"m1", "m2", "v1"}));
  leave(kVictim);
  EXPECT_EQ(inside_.size(), 3U) << "mallory has his two";
  leave(kMallory);
  EXPECT_EQ(inside_.back(), "m3");
}

TEST_F(GateTest, UsersTakeTurns) {
  come(kMallory, "m1");
  come(kVictim, "v1");
  come(kVictim, "v2");
  for (const auto* name : {"m2", "m3", "m4"}) come(kMallory, name);
  come(kVictim, "v3");
  leave(kVictim);
  leave(kMallory);
  leave(kVictim);
  EXPECT_EQ(inside_, (Names{"m1", "v1", "v2", "m2", "v3", "m3"}));
}

TEST_F(GateTest, IsEmptyAgainWhenAllHaveLeft) {
  for (const auto* name : {"m1", "m2", "m3"}) come(kMallory, name);
  for (int i = 0; i < 3; ++i) leave(kMallory);
  for (const auto* name : {"m4", "m5"}) come(kMallory, name);
  EXPECT_EQ(inside_, (Names{"m1", "m2", "m3", "m4", "m5"}));
}

}  // namespace
}  // namespace drover::engine

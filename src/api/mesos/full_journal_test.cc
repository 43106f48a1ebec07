// Calls while nothing can be kept: nobody is told 202 for what the daemon would not know after a crash, and
// what has happened all the same is kept later.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "api/mesos/testing/wire.h"

namespace drover::api::mesos {
namespace {

using api::testing::body_of;
using api::testing::status_of;
using nlohmann::json;
using ::testing::HasSubstr;

class FullJournalTest : public testing::WireTest {
 protected:
  void fill() {
    server_.on_strand([this] { server_.daemon().journal_is_full = true; });
  }
  void recover() {
    server_.on_strand([this] { server_.daemon().keep_what_waits(); });
  }
  std::size_t waiting() {
    return server_.on_strand([this] { return server_.daemon().waiting.size(); });
  }
  bool stop_requested() {
    return server_.on_strand(
        [this] { return server_.daemon().state().tasks.begin()->second.stop_requested; });
  }
  void expect_told_to_come_again(const std::string& answer) {
    EXPECT_EQ(status_of(answer), 503);
    EXPECT_EQ(body_of(answer), "The call could not be kept, call again: The disk is full");
  }
};

TEST_F(FullJournalTest, ATeardownIsRefusedUntilItCanBeKept) {
  auto stream = subscribe();
  const auto framework = id_of(stream);
  fill();
  expect_told_to_come_again(call(stream, framework, {{"type", "TEARDOWN"}}));
  EXPECT_EQ(waiting(), 0u) << "whoever is refused comes again";
  recover();
  EXPECT_EQ(status_of(call(stream, framework, {{"type", "TEARDOWN"}})), 202);
  EXPECT_TRUE(server_.on_strand(
      [&] { return server_.daemon().state().frameworks.at(framework).removed_at.has_value(); }));
}

TEST_F(FullJournalTest, AKillAndAShutdownAreDoneButNotConfirmed) {
  auto stream = subscribe();
  const auto framework = id_of(stream);
  const auto offer = offer_of(stream);
  call(stream, framework, accept(offer, json::array({task_info(offer, "t", 1)})));
  server_.start_all();
  fill();
  expect_told_to_come_again(
      call(stream, framework, {{"type", "KILL"}, {"kill", {{"task_id", {{"value", "t"}}}}}}));
  EXPECT_EQ(waiting(), 1u);
  expect_told_to_come_again(
      call(stream, framework,
           {{"type", "SHUTDOWN"},
            {"shutdown", {{"executor_id", {{"value", "t"}}}, {"agent_id", offer.at("agent_id")}}}}));
  EXPECT_EQ(waiting(), 2u);
  EXPECT_FALSE(stop_requested());
  recover();
  EXPECT_TRUE(stop_requested());
  EXPECT_EQ(status_of(call(stream, framework, {{"type", "KILL"}, {"kill", {{"task_id", {{"value", "t"}}}}}})),
            202);
}

TEST_F(FullJournalTest, AnUpdateIsAcknowledgedWhenThatIsKept) {
  auto stream = subscribe();
  const auto framework = id_of(stream);
  const auto offer = offer_of(stream);
  call(stream, framework, accept(offer, json::array({task_info(offer, "t", 1)})));
  const auto told = status(stream);
  fill();
  expect_told_to_come_again(call(stream, framework, acknowledge(told)));
  recover();
  const auto updates = [&] {
    return server_.on_strand(
        [&] { return server_.daemon().state().framework_tasks.begin()->second.updates.size(); });
  };
  EXPECT_EQ(updates(), 1u) << "it will be told again";
  EXPECT_EQ(status_of(call(stream, framework, acknowledge(told))), 202);
  EXPECT_EQ(updates(), 0u);
}

TEST_F(FullJournalTest, AFrameworkThatGoesMeanwhileIsKnownToBeGoneLater) {
  auto stream = subscribe();
  const auto framework = id_of(stream);
  fill();
  stream.close();
  for (int i = 0; i < 500 && waiting() == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ASSERT_EQ(waiting(), 1u);
  recover();
  EXPECT_TRUE(server_.on_strand(
      [&] { return server_.daemon().state().frameworks.at(framework).remove_at.has_value(); }));
}

TEST_F(FullJournalTest, WhatIsLaunchedIsDroppedAndItsResourcesAreOfferedAgain) {
  auto stream = subscribe();
  const auto framework = id_of(stream);
  const auto offer = offer_of(stream);
  fill();
  auto launching = accept(offer, json::array({task_info(offer, "t", 1)}));
  launching["accept"]["filters"] = {{"refuse_seconds", 0}};
  EXPECT_EQ(status_of(call(stream, framework, launching)), 202);
  const auto told = status(stream);
  EXPECT_EQ(told.at("state"), "TASK_DROPPED");
  EXPECT_EQ(told.at("reason"), "REASON_MASTER_DISCONNECTED");
  EXPECT_THAT(told.at("message").get<std::string>(), HasSubstr("The disk is full"));
  EXPECT_TRUE(server_.on_strand([&] { return server_.daemon().state().tasks.empty(); }));
  recover();
  const auto again = offer_of(stream);
  call(stream, framework, accept(again, json::array({task_info(again, "t", 1)})));
  EXPECT_TRUE(server_.on_strand([&] { return server_.daemon().state().tasks.size() == 1; }));
}

TEST_F(FullJournalTest, WhatTheStateRefusesIsAcceptedAllTheSame) {
  auto stream = subscribe();
  const auto framework = id_of(stream);
  const auto offer = offer_of(stream);
  call(stream, framework, accept(offer, json::array({task_info(offer, "t", 1)})));
  auto told = status(stream);
  EXPECT_EQ(status_of(call(stream, framework, acknowledge(told))), 202);
  fill();
  EXPECT_EQ(status_of(call(stream, framework, acknowledge(told))), 202) << "it was acknowledged before";
}

}  // namespace
}  // namespace drover::api::mesos

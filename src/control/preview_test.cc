#include "control/preview.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/testing/machine.h"

namespace drover::control {
namespace {

using namespace testing;  // NOLINT: the machine
using namespace std::chrono_literals;

/// A task of that name and size that has run for so long.
void learn(Machine& machine, workload::Task task, std::chrono::milliseconds time) {
  const auto id = task.id;
  ASSERT_TRUE(machine.submit(std::move(task)));
  ASSERT_TRUE(machine.on(event::Started{id, kNow}));
  auto ending = exited(0);
  ending.finished_at = kNow + time;
  ASSERT_TRUE(machine.on(event::Ended{id, ending}, kNow + time));
}

workload::Task named(const std::string& name, const std::string& id, int gpus) {
  auto named = task(id, gpus);
  named.name = name;
  return named;
}

TEST(ExpectedStart, IsWhenThoseBeforeItAreThoughtToHaveEnded) {
  Machine machine(1);
  learn(machine, named("train", "old", 1), 10min);
  for (const auto* id : {"runs", "next", "last"}) ASSERT_TRUE(machine.submit(named("train", id, 1)));
  ASSERT_TRUE(machine.on(event::Started{"runs", kNow}));
  EXPECT_EQ(expected_start(machine.state, "next", kNow), kNow + 10min);
  EXPECT_EQ(expected_start(machine.state, "last", kNow), kNow + 20min);
  EXPECT_EQ(expected_start(machine.state, "last", kNow + 4min), kNow + 20min);
  EXPECT_EQ(expected_start(machine.state, "next", kNow + 1h), kNow + 1h) << "at any moment";
  EXPECT_EQ(expected_start(machine.state, "runs", kNow), std::nullopt);
}

TEST(ExpectedStart, IsNotKnownWhereNothingIsExpected) {
  Machine machine(1);
  ASSERT_TRUE(machine.submit(task_of("alice", 1, "runs", 1)));
  ASSERT_TRUE(machine.submit(task_of("bob", 2, "waits", 1)));
  EXPECT_EQ(expected_start(machine.state, "waits", kNow), std::nullopt);
}

TEST(RunTimes, AreThoseOfTheTasksThatAreKept) {
  Machine machine(4);
  learn(machine, named("train", "one", 1), 10min);
  learn(machine, named("train", "two", 1), 20min);
  const auto kind = kind_of(named("train", "new", 1));
  EXPECT_EQ(machine.state.run_times.expected(kind), 15min);
  const auto learned = machine.state.run_times;
  machine.restart();
  EXPECT_EQ(machine.state.run_times, learned) << "there is no second book";
  ASSERT_TRUE(machine.on(event::RemoveRequested{"two"}));
  EXPECT_EQ(machine.state.run_times.expected(kind), 10min);
}

TEST(RunTimes, WhatWasStoppedSaysNothing) {
  Machine machine(4);
  ASSERT_TRUE(machine.submit(task("stopped", 1)));
  ASSERT_TRUE(machine.on(event::Started{"stopped", kNow}));
  ASSERT_TRUE(machine.on(event::StopRequested{"stopped"}, kNow + 1min));
  ASSERT_TRUE(machine.on(event::Ended{"stopped", exited(143, true)}, kNow + 1min));
  ASSERT_TRUE(machine.submit(task("waited", 9)).error().kind == ErrorKind::kInvalid);
  EXPECT_TRUE(machine.state.run_times.empty());
}

TEST(RunTimes, OfOneUserTheShortestGoesBehindTheFirst) {
  Machine machine(1);
  learn(machine, named("long", "old1", 1), 60min);
  learn(machine, named("short", "old2", 1), 1min);
  ASSERT_TRUE(machine.submit(named("long", "holder", 1)));
  for (const auto* id : {"l1", "l2"}) ASSERT_TRUE(machine.submit(named("long", id, 1)));
  ASSERT_TRUE(machine.submit(named("short", "s", 1)));
  EXPECT_THAT(machine.state.positions->order, ::testing::ElementsAre("l1", "s", "l2"));
}

}  // namespace
}  // namespace drover::control

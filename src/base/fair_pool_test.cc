#include "base/fair_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <thread>

namespace drover {
namespace {

using ::testing::ElementsAre;

constexpr FairPool::Key kAlice = 1001;
constexpr FairPool::Key kBob = 1002;

/// Work that runs until it is let go.
class Gate {
 public:
  FairPool::Work work() {
    return [this] {
      ++entered_;
      entered_.notify_all();
      opened_.wait();
    };
  }
  void await(int count) {
    for (int seen = entered_; seen < count; seen = entered_) entered_.wait(seen);
  }
  int entered() const { return entered_; }
  void open() { promise_.set_value(); }

 private:
  std::atomic<int> entered_ = 0;
  std::promise<void> promise_;
  std::shared_future<void> opened_ = promise_.get_future().share();
};

/// Done when the work of this key so far is done, for a key of which one runs at a time.
void drain(FairPool& pool, FairPool::Key key) {
  std::promise<void> done;
  ASSERT_TRUE(pool.post(key, [&] { done.set_value(); }));
  done.get_future().wait();
}

TEST(FairPool, AfterItWasStoppedNothingRuns) {
  FairPool pool({.threads = 1, .at_once = 1, .waiting = 8});
  std::promise<void> begun, may_end;
  std::atomic<int> ran = 0;
  const auto held = std::make_shared<int>(0);
  ASSERT_TRUE(pool.post(1, [&] {
    begun.set_value();
    may_end.get_future().wait();
    ++ran;
  }));
  ASSERT_TRUE(pool.post(1, [&ran, held] { ++ran; }));
  begun.get_future().wait();
  std::thread stops([&] { pool.stop(); });
  for (FairPool::Key other = 2; pool.post(other, [] {}); ++other)
    std::this_thread::yield();  // until it stops
  may_end.set_value();
  stops.join();
  EXPECT_EQ(ran, 1) << "what was under way";
  EXPECT_EQ(held.use_count(), 1) << "what waited is dropped";
  EXPECT_FALSE(pool.post(2, [] {}));
}

TEST(FairPool, WhoFillsItWaitsForHimself) {
  Gate gate;
  FairPool pool({.threads = 3, .at_once = 2, .waiting = 100});
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(pool.post(kAlice, gate.work()));
  gate.await(2);
  for (int i = 0; i < 5; ++i) drain(pool, kBob);
  EXPECT_EQ(gate.entered(), 2);
  gate.open();
}

TEST(FairPool, KeysTakeTurnsAndEachKeepsItsOrder) {
  Gate gate;
  std::vector<std::string> order;
  FairPool pool({.threads = 1, .at_once = 1, .waiting = 100});
  ASSERT_TRUE(pool.post(0, gate.work()));
  gate.await(1);
  for (const auto* name : {"a1", "a2", "a3"})
    ASSERT_TRUE(pool.post(kAlice, [&order, name] { order.emplace_back(name); }));
  for (const auto* name : {"b1", "b2"})
    ASSERT_TRUE(pool.post(kBob, [&order, name] { order.emplace_back(name); }));
  gate.open();
  drain(pool, kAlice);
  EXPECT_THAT(order, ElementsAre("a1", "b1", "a2", "b2", "a3"));
}

TEST(FairPool, TooMuchOfOneKeyIsRefusedAndOfAnotherNot) {
  Gate gate;
  FairPool pool({.threads = 1, .at_once = 1, .waiting = 2});
  ASSERT_TRUE(pool.post(kAlice, gate.work()));
  gate.await(1);
  EXPECT_TRUE(pool.post(kAlice, [] {}));
  EXPECT_TRUE(pool.post(kAlice, [] {}));
  EXPECT_FALSE(pool.post(kAlice, [] {}));
  EXPECT_EQ(pool.load(kAlice), 3u);
  EXPECT_EQ(pool.load(kBob), 0u);
  EXPECT_TRUE(pool.post(kBob, [] {}));
  gate.open();
  drain(pool, kBob);
  drain(pool, kAlice);
  EXPECT_TRUE(pool.post(kAlice, [] {}));
}

TEST(FairPool, WhatStillWaitsAtItsEndIsDropped) {
  Gate gate;
  const auto held = std::make_shared<int>(0);
  std::atomic<bool> ran = false;
  std::thread opener;
  {
    FairPool pool({.threads = 1, .at_once = 1, .waiting = 2});
    ASSERT_TRUE(pool.post(kAlice, gate.work()));
    gate.await(1);
    ASSERT_TRUE(pool.post(kAlice, [held, &ran] { ran = true; }));
    EXPECT_EQ(held.use_count(), 2);
    // The pool is being destroyed by the time that the work under way ends, or it runs what waits: both are
    // right, and neither may leave anything behind.
    opener = std::thread([&] { gate.open(); });
  }
  opener.join();
  EXPECT_EQ(held.use_count(), 1);
}

TEST(FairPool, AnUnusedPoolHasNothingToWaitFor) {
  const FairPool pool({});
}

}  // namespace
}  // namespace drover

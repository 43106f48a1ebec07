#include "container/shim_watcher.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "base/pidfd.h"

namespace drover::container {
namespace {

/// A child that lives until it is killed.
UniqueFd a_process() {
  const auto pid = ::fork();
  if (pid == 0) {
    while (true) ::pause();
  }
  return open_process(pid);
}

bool eventually(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!condition() && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return condition();
}

TEST(ShimWatcher, TellsOnceThatAProcessHasEnded) {
  std::atomic<int> ended = 0;
  auto watcher = ShimWatcher::start({[](const auto&) { return true; },
                                     [&](const auto& id) {
                                       EXPECT_EQ(id, "a");
                                       ++ended;
                                       return true;
                                     }})
                     .value();
  ASSERT_TRUE(watcher->add("a", a_process(), false));
  EXPECT_TRUE(watcher->watches("a"));
  ASSERT_TRUE(watcher->signal("a", SIGKILL));
  EXPECT_TRUE(eventually([&] { return ended == 1; }));
  EXPECT_TRUE(eventually([&] { return !watcher->watches("a"); }));
  EXPECT_EQ(watcher->signal("a", SIGKILL).error().kind, ErrorKind::kNotFound);
}

TEST(ShimWatcher, AsksWhetherItStartedUntilItHas) {
  std::atomic<int> asked = 0, asked_before_end = 0;
  auto watcher = ShimWatcher::start({[&](const auto&) { return ++asked == 3; },
                                     [&](const auto&) {
                                       asked_before_end = asked.load();
                                       return true;
                                     }})
                     .value();
  ASSERT_TRUE(watcher->add("a", a_process(), true));
  EXPECT_TRUE(eventually([&] { return asked == 3; }));
  ASSERT_TRUE(watcher->signal("a", SIGKILL));
  EXPECT_TRUE(eventually([&] { return asked_before_end == 3; }));
}

TEST(ShimWatcher, AsksAgainUntilTheEndIsSettled) {
  std::atomic<int> asked = 0;
  std::atomic<bool> settled = false;
  auto watcher = ShimWatcher::start({[](const auto&) { return true; },
                                     [&](const auto&) {
                                       ++asked;
                                       return settled.load();
                                     }})
                     .value();
  ASSERT_TRUE(watcher->add("a", a_process(), false));
  ASSERT_TRUE(watcher->signal("a", SIGKILL));
  EXPECT_TRUE(eventually([&] { return asked >= 2; }));
  EXPECT_TRUE(watcher->watches("a"));
  EXPECT_TRUE(watcher->signal("a", SIGKILL)) << "it is on its way";
  settled = true;
  EXPECT_TRUE(eventually([&] { return !watcher->watches("a"); }));
}

TEST(ShimWatcher, NoTaskWaitsForOthersThatDoNotEnd) {
  constexpr int kStuck = 100;
  std::mutex mutex;
  std::condition_variable changed;
  bool over = false;
  std::atomic<int> ended = 0, asked = 0;
  const auto settle = [&](const std::string& id) {
    if (id.starts_with("stuck")) {
      ++asked;
      std::unique_lock lock(mutex);  // as one that does not end is waited for, and then asked again
      return changed.wait_for(lock, std::chrono::milliseconds(200), [&] { return over; });
    }
    ++ended;
    return true;
  };
  auto watcher = ShimWatcher::start({[](const auto&) { return true; }, settle}).value();
  for (int i = 0; i < kStuck; ++i) {
    const auto id = "stuck" + std::to_string(i);
    ASSERT_TRUE(watcher->add(id, a_process(), false));
    ASSERT_TRUE(watcher->signal(id, SIGKILL));
  }
  EXPECT_TRUE(eventually([&] { return asked > 2 * kStuck; })) << "all of them are asked again";
  for (int i = 0; i < 50; ++i) {
    const auto id = "a" + std::to_string(i);
    ASSERT_TRUE(watcher->add(id, a_process(), false));
    ASSERT_TRUE(watcher->signal(id, SIGKILL));
  }
  const auto began = std::chrono::steady_clock::now();
  EXPECT_TRUE(eventually([&] { return ended == 50; }));
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(10)) << "one by one it takes 20";
  EXPECT_TRUE(watcher->forget("a0").get() < 0);
  {
    const std::lock_guard lock(mutex);
    over = true;
  }
  changed.notify_all();
  EXPECT_TRUE(eventually([&] { return !watcher->watches("stuck0"); }));
}

TEST(ShimWatcher, WhatIsForgottenIsNotTold) {
  std::atomic<int> ended = 0;
  auto watcher =
      ShimWatcher::start({[](const auto&) { return true; }, [&](const auto&) { return ++ended > 0; }})
          .value();
  ASSERT_TRUE(watcher->add("a", a_process(), false));
  const auto process = watcher->forget("a");
  ASSERT_TRUE(process.valid());
  EXPECT_FALSE(watcher->watches("a"));
  EXPECT_EQ(await_process(process.get(), std::chrono::milliseconds(10)).error().kind, ErrorKind::kTimeout);
  send_signal(process, SIGKILL);
  EXPECT_TRUE(await_process(process.get(), std::chrono::seconds(30)));
  EXPECT_EQ(ended, 0);
}

}  // namespace
}  // namespace drover::container

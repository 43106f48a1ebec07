#include "container/shim_watcher.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>

namespace drover::container {
namespace {

/// A child that lives until it is killed.
UniqueFd a_process() {
  const auto pid = ::fork();
  if (pid == 0) {
    while (true) ::pause();
  }
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
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
  ::syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0);
  EXPECT_TRUE(await_process(process.get(), std::chrono::seconds(30)));
  EXPECT_EQ(ended, 0);
}

}  // namespace
}  // namespace drover::container

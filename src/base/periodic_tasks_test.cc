#include "base/periodic_tasks.h"

#include <gmock/gmock.h>

#include <atomic>
#include <condition_variable>

namespace drover {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

TEST(PeriodicTasks, DoEachEverAgain) {
  std::atomic<int> first = 0, second = 0;
  PeriodicTasks tasks;
  tasks.add("counting", 1ms, [&] { ++first; });
  tasks.add("counting too", 1h, [&] { ++second; });
  while (first < 3 || second < 1) std::this_thread::sleep_for(1ms);
  tasks.end();
  EXPECT_EQ(second, 1);
  const int then = first;
  std::this_thread::sleep_for(10ms);
  EXPECT_EQ(first, then);
}

TEST(PeriodicTasks, ACallThatDoesNotReturnIsTold) {
  std::mutex mutex;
  std::condition_variable changed;
  bool begun = false, over = false;
  PeriodicTasks tasks;
  tasks.add("counting", 1ms, [] {});
  tasks.add("waiting", 1ms, [&] {
    std::unique_lock lock(mutex);
    begun = true;
    changed.notify_all();
    changed.wait(lock, [&] { return over; });
  });
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return begun; });
  }
  EXPECT_TRUE(tasks.check(1h));
  std::this_thread::sleep_for(2ms);
  const auto hung = tasks.check(1ms);
  ASSERT_FALSE(hung);
  EXPECT_THAT(hung.error().message, HasSubstr("waiting has taken"));
  {
    const std::lock_guard lock(mutex);
    over = true;
  }
  changed.notify_all();
  tasks.end();
  EXPECT_TRUE(tasks.check(0ms));
}

}  // namespace
}  // namespace drover

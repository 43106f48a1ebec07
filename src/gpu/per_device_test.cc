#include "gpu/per_device.h"

#include <gtest/gtest.h>

#include <atomic>

namespace drover::gpu {
namespace {

struct Counted : DeviceThreads {
  std::atomic<int> alive = 0;
  bool freed = false;  ///< whoever hangs goes on
};

/// The GPU "hangs" does not hear that it is to stop.
struct CountedWorker {
  CountedWorker(std::shared_ptr<Counted> the_shared, const Device& device)
      : shared(std::move(the_shared)), hangs(device.uuid == "hangs") {
    ++shared->alive;
  }
  ~CountedWorker() { --shared->alive; }

  std::shared_ptr<Counted> shared;
  bool hangs;

  void run() {
    std::unique_lock lock(shared->mutex);
    shared->changed.wait(lock, [&] { return hangs ? shared->freed : shared->stopped; });
  }
};

Device device(const std::string& uuid) {
  Device made;
  made.uuid = uuid;
  return made;
}

TEST(PerDevice, EachGpuHasOne) {
  PerDevice<Counted, CountedWorker> workers(std::make_shared<Counted>());
  EXPECT_FALSE(workers.contains("a"));
  auto& first = workers.at(device("a"));
  EXPECT_TRUE(workers.contains("a"));
  EXPECT_NE(&workers.at(device("b")), &first);
  EXPECT_EQ(&workers.at(device("a")), &first);
  std::string seen;
  workers.each([&](const std::string& uuid, const CountedWorker&) { seen += uuid; });
  EXPECT_EQ(seen, "ab");
}

TEST(PerDevice, OneThatHangsIsLeftBehindWithWhatItNeeds) {
  const auto shared = std::make_shared<Counted>();
  {
    PerDevice<Counted, CountedWorker> workers(shared);
    for (const auto* uuid : {"a", "hangs", "b"}) workers.at(device(uuid));
    EXPECT_EQ(shared->alive, 3);
  }
  EXPECT_EQ(shared->alive, 1);
  {
    const std::lock_guard lock(shared->mutex);
    shared->freed = true;
    shared->changed.notify_all();
  }
  while (shared->alive != 0) std::this_thread::yield();
}

}  // namespace
}  // namespace drover::gpu

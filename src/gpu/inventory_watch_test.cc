#include "gpu/inventory_watch.h"

#include <gmock/gmock.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <vector>

namespace drover::gpu {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

Sight machine_with(const std::string& uuid) {
  Sight sight;
  sight.inventory.devices.emplace_back().uuid = uuid;
  return sight;
}

std::vector<std::string> uuids(const Inventory& inventory) {
  std::vector<std::string> uuids;
  for (const auto& device : inventory.devices) uuids.push_back(device.uuid);
  return uuids;
}

SharedNvml no_library() {
  return std::make_shared<const Result<Nvml>>(fail(ErrorKind::kUnavailable, "There is no driver"));
}

/// A driver that answers when it is let. Outlives whoever looks.
class Driver {
 public:
  Sight discover() {
    std::unique_lock lock(mutex_);
    ++asked_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return answers_; });
    return sight_;
  }
  void answer(Sight sight) {
    const std::lock_guard lock(mutex_);
    sight_ = std::move(sight);
    answers_ = true;
    changed_.notify_all();
  }
  void hang() {
    const std::lock_guard lock(mutex_);
    answers_ = false;
  }
  /// Until it was asked once more.
  void wait_for_question() {
    std::unique_lock lock(mutex_);
    const auto before = asked_;
    changed_.wait(lock, [&] { return asked_ > before; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  Sight sight_;
  bool answers_ = false;
  int asked_ = 0;
};

class InventoryWatchTest : public testing::Test {
 protected:
  void watch() {
    options_.seen = [this](const Sight& sight) {
      const std::lock_guard lock(mutex_);
      seen_.push_back(uuids(sight.inventory));
      changed_.notify_all();
    };
    watch_ = std::make_unique<InventoryWatch>([driver = driver_](const Sight&) { return driver->discover(); },
                                              no_library, options_);
  }
  void wait_until_seen(const std::string& uuid) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !seen_.empty() && seen_.back() == std::vector{uuid}; });
  }

  std::shared_ptr<Driver> driver_ = std::make_shared<Driver>();
  InventoryWatchOptions options_{.pause = 1ms, .patience = 30s, .health = {}, .seen = {}, .changed = {}};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::vector<std::string>> seen_;
  std::unique_ptr<InventoryWatch> watch_;
};

TEST_F(InventoryWatchTest, TheFirstLookIsThroughAndToldWhenItIsThere) {
  driver_->answer(machine_with("GPU-1"));
  options_.pause = 1h;
  watch();
  EXPECT_THAT(uuids(watch_->inventory()), ElementsAre("GPU-1"));
  EXPECT_THAT(watch_->inventory().problems, IsEmpty());
  EXPECT_THAT(seen_, ElementsAre(ElementsAre("GPU-1")));
}

TEST_F(InventoryWatchTest, LooksAgain) {
  driver_->answer(machine_with("GPU-1"));
  watch();
  driver_->answer(machine_with("GPU-2"));
  wait_until_seen("GPU-2");
  EXPECT_THAT(uuids(watch_->inventory()), ElementsAre("GPU-2"));
}

TEST_F(InventoryWatchTest, ADriverThatNeverAnsweredIsToldOf) {
  options_.patience = 10ms;
  watch();
  const auto inventory = watch_->inventory();
  EXPECT_THAT(inventory.devices, IsEmpty());
  ASSERT_EQ(inventory.problems.size(), 1U);
  EXPECT_EQ(inventory.problems.front().message, "The NVIDIA driver does not answer");
  driver_->answer(machine_with("GPU-1"));  // it was only slow
  wait_until_seen("GPU-1");
  EXPECT_THAT(watch_->inventory().problems, IsEmpty());
}

TEST_F(InventoryWatchTest, ADriverThatAnswersAgainIsHeardThoughOneLookNeverReturns) {
  struct Driver {
    std::atomic<int> discoveries = 0;
    std::atomic<bool> over = false;
  };
  const auto driver = std::make_shared<Driver>();  // the last look may outlive the watch
  options_.patience = 10ms;
  const InventoryWatch watch(
      [driver](const Sight&) {
        if (++driver->discoveries > 1) return machine_with("GPU-1");
        while (!driver->over) std::this_thread::sleep_for(1ms);
        return machine_with("GPU-0");
      },
      no_library, options_);
  while (watch.inventory().devices.empty()) std::this_thread::sleep_for(1ms);
  driver->over = true;
  const int then = driver->discoveries;
  while (driver->discoveries < then + 3) std::this_thread::sleep_for(1ms);
  EXPECT_THAT(uuids(watch.inventory()), ElementsAre("GPU-1")) << "what began earlier tells less";
}

TEST_F(InventoryWatchTest, WhatWasSeenLastIsToldWhileTheDriverDoesNotAnswer) {
  driver_->answer(machine_with("GPU-1"));
  watch();
  driver_->hang();
  driver_->wait_for_question();
  EXPECT_THAT(uuids(watch_->inventory()), ElementsAre("GPU-1"));
}

TEST_F(InventoryWatchTest, EndsBesideALookThatDoesNotAndHearsNothingMoreOfIt) {
  driver_->answer(machine_with("GPU-1"));
  watch();
  driver_->hang();
  driver_->wait_for_question();
  watch_.reset();
  const auto told = seen_.size();
  driver_->answer(machine_with("GPU-2"));
  while (driver_.use_count() > 1) std::this_thread::sleep_for(1ms);  // the thread has gone
  EXPECT_EQ(seen_.size(), told);
}

TEST_F(InventoryWatchTest, HandsWhatWasSeenLastToTheNextLook) {
  struct Discoveries {
    std::mutex mutex;
    std::vector<std::vector<std::string>> before;
  };
  const auto discoveries = std::make_shared<Discoveries>();  // the last one may outlive the watch
  const InventoryWatch watch(
      [discoveries](const Sight& last) {
        const std::lock_guard lock(discoveries->mutex);
        discoveries->before.push_back(uuids(last.inventory));
        return machine_with("GPU-" + std::to_string(discoveries->before.size()));
      },
      no_library, options_);
  const auto count = [&] {
    const std::lock_guard lock(discoveries->mutex);
    return discoveries->before.size();
  };
  while (count() < 2) std::this_thread::sleep_for(1ms);
  const std::lock_guard lock(discoveries->mutex);
  EXPECT_THAT(discoveries->before[0], IsEmpty());
  EXPECT_THAT(discoveries->before[1], ElementsAre("GPU-1"));
}

}  // namespace
}  // namespace drover::gpu

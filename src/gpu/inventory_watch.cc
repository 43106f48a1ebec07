#include "gpu/inventory_watch.h"

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "gpu/discovery.h"

namespace drover::gpu {
namespace {

constexpr std::chrono::seconds kLastLook{1};

Sight not_seen_yet() {
  Sight sight;
  sight.inventory.problems = {{ErrorKind::kUnavailable, "The NVIDIA driver does not answer",
                               "look at what the kernel says of it (dmesg), and whether 'nvidia-smi' returns",
                               ""}};
  return sight;
}

}  // namespace

struct InventoryWatch::Shared {
  std::mutex mutex;
  std::condition_variable changed;
  std::shared_ptr<const Sight> sight = std::make_shared<const Sight>(not_seen_yet());
  enum class Phase { kLooking, kTelling, kResting };
  Phase phase = Phase::kLooking;
  bool looked = false;  ///< once, and it was told
  bool stopping = false;

  std::shared_ptr<const Sight> last() {
    const std::lock_guard lock(mutex);
    return sight;
  }
  /// False when it is time to stop.
  bool enter(Phase next) {
    const std::lock_guard lock(mutex);
    phase = stopping ? Phase::kResting : next;
    looked = looked || phase == Phase::kResting;
    changed.notify_all();
    return !stopping;
  }
  bool publish(std::shared_ptr<const Sight> found) {
    {
      const std::lock_guard lock(mutex);
      sight = std::move(found);
    }
    return enter(Phase::kTelling);
  }
  bool pause(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex);
    return !changed.wait_for(lock, time, [&] { return stopping; });
  }
};

InventoryWatch::InventoryWatch(Look look, HealthWatch::Library library, InventoryWatchOptions options)
    : shared_(std::make_shared<Shared>()),
      health_(
          std::move(library), {}, options.health,
          options.changed ? std::move(options.changed) : [](const HealthChange&) {}),
      thread_([this, shared = shared_, look = std::move(look), pause = options.pause,
               seen = std::move(options.seen)] {
        using enum Shared::Phase;
        do {
          const auto found = std::make_shared<const Sight>(look(*shared->last()));
          if (!shared->publish(found)) return;
          health_.watch(found->inventory.devices);
          if (seen) seen(*found);
          shared->enter(kResting);
        } while (shared->pause(pause) && shared->enter(kLooking));
      }) {
  std::unique_lock lock(shared_->mutex);
  shared_->changed.wait_for(lock, options.first_look, [&] { return shared_->looked; });
}

InventoryWatch::~InventoryWatch() {
  std::unique_lock lock(shared_->mutex);
  shared_->stopping = true;
  shared_->changed.notify_all();
  const bool may_be_joined =
      shared_->changed.wait_for(lock, kLastLook, [&] { return shared_->phase != Shared::Phase::kLooking; });
  lock.unlock();
  if (may_be_joined)
    thread_.join();
  else
    thread_.detach();
}

Sight InventoryWatch::sight() const {
  auto sight = *shared_->last();
  const auto health = health_.health();
  // Health tells more of what both see, as of a GPU that is lost.
  for (auto& device : sight.inventory.devices)
    if (auto why = health.why_unfit(device.uuid); !why.empty() && device.unfit != kInMigMode)
      device.unfit = std::move(why);
  return sight;
}

}  // namespace drover::gpu

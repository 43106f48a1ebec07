#include "gpu/inventory_watch.h"

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <utility>

#include "gpu/discovery.h"

namespace drover::gpu {
namespace {

/// Discoveries at once. More would only be more threads that hang.
constexpr int kMostDiscoveries = 8;

Sight not_seen_yet() {
  Sight sight;
  sight.inventory.problems = {{ErrorKind::kUnavailable, "The NVIDIA driver does not answer",
                               "look at what the kernel says of it (dmesg), and whether 'nvidia-smi' returns",
                               ""}};
  return sight;
}

}  // namespace

/// What a thread that is left behind still needs.
struct InventoryWatch::Shared : std::enable_shared_from_this<Shared> {
  explicit Shared(Discover discover_now) : discover(std::move(discover_now)) {}

  const Discover discover;
  std::mutex mutex;
  std::condition_variable changed;
  std::shared_ptr<const Sight> sight = std::make_shared<const Sight>(not_seen_yet());
  std::shared_ptr<const Sight> arrived;  ///< by the newest discovery that has returned, until it is told
  std::uint64_t newest = 0;              ///< its number
  std::uint64_t discoveries = 0;         ///< so far
  int under_way = 0;
  bool notified = false;  ///< of a first discovery
  bool stopping = false;

  std::shared_ptr<const Sight> last() {
    const std::lock_guard lock(mutex);
    return sight;
  }
  void start_discovery() {
    const std::lock_guard lock(mutex);
    if (under_way == kMostDiscoveries) return;
    ++under_way;
    std::thread([shared = shared_from_this(), number = ++discoveries, before = sight] {
      auto found = std::make_shared<const Sight>(shared->discover(*before));
      const std::lock_guard again(shared->mutex);
      --shared->under_way;
      if (number < shared->newest) return;  // another one that began later has told more
      shared->newest = number;
      shared->arrived = std::move(found);
      shared->changed.notify_all();
    }).detach();
  }
  /// What has arrived within that time; null when nothing has, or it is time to stop.
  std::shared_ptr<const Sight> await(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, time, [&] { return stopping || arrived; });
    if (stopping || !arrived) return nullptr;
    sight = std::exchange(arrived, nullptr);
    return sight;
  }
  bool is_stopping() {
    const std::lock_guard lock(mutex);
    return stopping;
  }
};

InventoryWatch::InventoryWatch(Discover discover, HealthWatch::Library library, InventoryWatchOptions options)
    : shared_(std::make_shared<Shared>(std::move(discover))),
      health_(
          std::move(library), {}, options.health,
          options.changed ? std::move(options.changed) : [](const HealthChange&) {}),
      thread_([this, pause = options.pause, patience = options.patience, seen = std::move(options.seen)] {
        keep_discovering(pause, patience, seen);
      }) {
  std::unique_lock lock(shared_->mutex);
  shared_->changed.wait_for(lock, options.patience, [&] { return shared_->notified; });
}

InventoryWatch::~InventoryWatch() {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->stopping = true;
  }
  shared_->changed.notify_all();
  thread_.join();
}

void InventoryWatch::keep_discovering(std::chrono::milliseconds pause, std::chrono::milliseconds patience,
                                      const std::function<void(const Sight&)>& seen) {
  const auto notify = [&](const std::shared_ptr<const Sight>& sight) {
    if (!sight) return;
    health_.watch(sight->inventory.devices);
    if (seen) seen(*sight);
    const std::lock_guard lock(shared_->mutex);
    shared_->notified = true;
    shared_->changed.notify_all();
  };
  while (!shared_->is_stopping()) {
    shared_->start_discovery();
    notify(shared_->await(patience));
    notify(shared_->await(pause));  // one that took longer may come any time
  }
}

Sight InventoryWatch::sight() const {
  auto sight = *shared_->last();
  const auto health = health_.health();
  // Health tells more of what both see, as of a GPU that is lost.
  for (auto& device : sight.inventory.devices)
    if (auto why = health.why_unhealthy(device.uuid); !why.empty() && device.unhealthy != kInMigMode)
      device.unhealthy = std::move(why);
  return sight;
}

}  // namespace drover::gpu

#pragma once

// Discovers a machine's GPUs again and again, and watches their health, for whoever offers them. A driver
// that never answers keeps nobody from anything: discoveries have threads of their own that nobody waits for,
// and what is told then is what was seen last, without the GPUs whose health has gone.
//
//   InventoryWatch watch([hardware](const Sight& before) { return Sight{hardware->discover(), {}}; },
//                        [&] { return hardware->shared_nvml(); }, {.seen = offer, .changed = tell});
//
// Thread safe. The destructor waits for the listeners; threads whose discovery does not return are left
// behind with what the discovery holds, and touch nothing else.

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "gpu/device.h"
#include "gpu/health_watch.h"
#include "gpu/mig.h"

namespace drover::gpu {

/// What one look found.
struct Sight {
  Inventory inventory;
  std::map<std::string, MigGpu> mig;  ///< how those in MIG mode are cut, by UUID
};

struct InventoryWatchOptions {
  std::chrono::milliseconds pause = std::chrono::seconds(10);  ///< between discoveries
  std::chrono::milliseconds patience =
      std::chrono::seconds(30);  ///< a driver that wakes its cards takes some
  HealthWatchOptions health;
  std::function<void(const Sight&)> seen;  ///< by every discovery, one at a time; may be empty
  HealthWatch::Listener changed;           ///< as HealthWatch tells it; may be empty
};

class InventoryWatch {
 public:
  /// Discovers now; may never return, and is called again meanwhile: it holds what it uses. `before` is what
  /// was seen last.
  using Discover = std::function<Sight(const Sight& before)>;

  /// Waits for the first look, but not for ever: an inventory that says why it is empty stands for it.
  InventoryWatch(Discover discover, HealthWatch::Library library, InventoryWatchOptions options);
  ~InventoryWatch();
  InventoryWatch(const InventoryWatch&) = delete;
  InventoryWatch& operator=(const InventoryWatch&) = delete;

  /// What was seen last; GPUs that are out of health now are unhealthy.
  Sight sight() const;
  Inventory inventory() const { return sight().inventory; }
  Health health() const { return health_.health(); }

 private:
  struct Shared;
  void keep_discovering(std::chrono::milliseconds pause, std::chrono::milliseconds patience,
                        const std::function<void(const Sight&)>& seen);

  std::shared_ptr<Shared> shared_;
  HealthWatch health_;
  std::thread thread_;
};

}  // namespace drover::gpu

#pragma once

// Watches the health of a machine's GPUs: hears their errors as they happen, polls them, and tells what
// changes. What it judges is gpu/health.h; this is the thin edge with the threads.
//
//   HealthWatch watch([&] { return hardware.shared_nvml(); }, inventory.devices, {.policy = policy},
//                     [](const HealthChange& change) { … });
//
// Each GPU has a thread of its own that alone calls NVML for it, so a call that does not return holds up no
// other GPU: after `patience` that GPU is silent. A further thread asks for the library, and one judges. A
// GPU whose driver does not report errors as they happen is unmonitored, which is told once; it is polled all
// the same. A GPU that goes away stays known, and lost.
//
// Errors are attributed without asking anybody, since each GPU has an event set of its own. NVIDIA's plugin
// has one for all, and takes out every GPU of the node when it cannot find out whose an error is; a GPU that
// fell off the bus is just the one that cannot tell. Here there is no such event, and a GPU whose wait fails
// is polled at once.
//
// Thread safe. The listener is called on the judging thread, one change at a time, in their order; it may
// call health() and watch(), and must not destroy the watch. The destructor ends within about a second, but
// waits for the listener and for a library that is being loaded; threads whose call about a GPU does not
// return are left behind with what they need, and touch nothing else.

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "gpu/device.h"
#include "gpu/health.h"
#include "gpu/health_probe.h"
#include "gpu/per_device.h"

namespace drover::gpu {

struct HealthWatchOptions {
  XidPolicy policy;
  HealthTiming timing;
  std::chrono::milliseconds poll_every = std::chrono::seconds(5);
  std::chrono::milliseconds patience = std::chrono::seconds(10);  ///< for one poll
};

class HealthWatch {
 public:
  /// The library as it is now, or why there is none; another pointer when it was loaded anew. May block.
  using Library = std::function<SharedNvml()>;
  using Listener = std::function<void(const HealthChange&)>;

  /// Starts at once. Both functions are called on one thread each, until the destructor returns.
  HealthWatch(Library library, const std::vector<Device>& devices, const HealthWatchOptions& options,
              Listener listener);
  ~HealthWatch();
  HealthWatch(const HealthWatch&) = delete;
  HealthWatch& operator=(const HealthWatch&) = delete;

  /// Watches those too that it does not watch yet, if they tell their UUID; a GPU is never let go.
  void watch(const std::vector<Device>& devices);
  /// What is known now.
  Health health() const;

 private:
  struct Shared;
  struct Watcher;
  void keep_library();
  void judge();

  Library library_;
  Listener listener_;
  std::shared_ptr<Shared> shared_;
  mutable std::mutex mutex_;  ///< of the next two
  Health health_;
  PerDevice<Shared, Watcher> watchers_;
  std::thread keeper_;
  std::thread judge_;
};

}  // namespace drover::gpu

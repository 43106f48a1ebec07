#pragma once

// A thread for each GPU, for calls into its driver, which may never return: then only that GPU is waited for
// in vain. A thread that does not end is left behind with what it needs, and touches nothing else.
//
//   struct Shared : DeviceThreads { … };
//   struct Worker { Worker(std::shared_ptr<Shared>, const Device&); void run(); };
//   PerDevice<Shared, Worker> workers(std::make_shared<Shared>());
//
// run() is called on the GPU's thread and returns soon after `stopped` is set. What others see of a Worker is
// guarded by the mutex that all have in common. PerDevice itself is used by one thread at a time.

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "gpu/device.h"

namespace drover::gpu {

/// What the threads have in common; lives as long as the last of them.
struct DeviceThreads {
  std::mutex mutex;                 ///< of the next two, and of what workers show
  std::condition_variable changed;  ///< told of whatever others may wait for
  bool stopped = false;

  void stop() {
    const std::lock_guard lock(mutex);
    stopped = true;
    changed.notify_all();
  }
};

template <typename Shared, typename Worker>
class PerDevice {
 public:
  explicit PerDevice(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
  /// Stops all, and waits a second for them.
  ~PerDevice() {
    shared_->stop();
    std::unique_lock lock(shared_->mutex);
    shared_->changed.wait_for(lock, std::chrono::seconds(1), [&] {
      return std::ranges::all_of(threads_, [](const auto& each) { return each.second.one->ended; });
    });
    for (auto& [uuid, each] : threads_)
      if (each.one->ended)
        each.thread.join();
      else
        each.thread.detach();
  }
  PerDevice(const PerDevice&) = delete;
  PerDevice& operator=(const PerDevice&) = delete;

  bool contains(const std::string& uuid) const { return threads_.contains(uuid); }

  /// That of this GPU, which tells its UUID; started when there is none.
  Worker& at(const Device& device) {
    auto& each = threads_[device.uuid];
    if (each.one) return each.one->worker;
    each.one = std::make_shared<One>(shared_, device);
    each.thread = std::thread([one = each.one, shared = shared_] {
      one->worker.run();
      const std::lock_guard lock(shared->mutex);
      one->ended = true;
      shared->changed.notify_all();
    });
    return each.one->worker;
  }

  /// visit(uuid, worker) of all, by UUID.
  template <typename Visit>
  void each(const Visit& visit) const {
    for (const auto& [uuid, entry] : threads_) visit(uuid, entry.one->worker);
  }

 private:
  struct One {
    One(std::shared_ptr<Shared> shared, const Device& device) : worker(std::move(shared), device) {}
    Worker worker;
    bool ended = false;
  };
  struct Entry {
    std::shared_ptr<One> one;
    std::thread thread;
  };

  std::shared_ptr<Shared> shared_;
  std::map<std::string, Entry> threads_;  ///< by UUID
};

}  // namespace drover::gpu

#include "gpu/usage_sampler.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "gpu/recognise.h"
#include "gpu/usage_probe.h"

namespace drover::gpu {
namespace {

constexpr std::chrono::seconds kLeave(1);

}  // namespace

/// What the threads have in common; lives as long as the last of them.
struct UsageSampler::Shared {
  explicit Shared(Library the_library) : library(std::move(the_library)) {}

  const Library library;
  std::mutex mutex;  ///< of all below, and of the workers' own fields
  std::condition_variable changed;
  bool stopped = false;
};

/// One GPU's thread.
struct UsageSampler::Worker {
  Worker(std::shared_ptr<Shared> the_shared, const Device& device)
      : shared(std::move(the_shared)), probe(device) {}

  std::shared_ptr<Shared> shared;
  bool wanted = false;  ///< a look, and it is not over yet
  bool late = false;    ///< somebody has waited for it in vain
  bool ended = false;
  GpuUsage usage;
  std::thread thread;

  void run() {
    std::unique_lock lock(shared->mutex);
    for (;;) {
      shared->changed.wait(lock, [&] { return shared->stopped || wanted; });
      if (shared->stopped) break;
      lock.unlock();
      auto seen = sample();
      lock.lock();
      usage = std::move(seen);
      wanted = late = false;
      shared->changed.notify_all();
    }
    ended = true;
    shared->changed.notify_all();
  }

 private:
  UsageProbe probe;

  /// The library is let go of at once, so that another driver's can take its place.
  GpuUsage sample() {
    const auto nvml = shared->library();
    return nvml && *nvml ? probe.sample(**nvml) : GpuUsage{};
  }
};

UsageSampler::UsageSampler(Library library, UsageSamplerOptions options)
    : options_(options), shared_(std::make_shared<Shared>(std::move(library))) {}

UsageSampler::~UsageSampler() {
  std::unique_lock lock(shared_->mutex);
  shared_->stopped = true;
  shared_->changed.notify_all();
  shared_->changed.wait_for(
      lock, kLeave, [&] { return std::ranges::all_of(workers_, [](auto& w) { return w.second->ended; }); });
  for (auto& [uuid, worker] : workers_)
    if (worker->ended)
      worker->thread.join();
    else
      worker->thread.detach();
}

std::map<std::string, GpuUsage> UsageSampler::sample(const std::vector<Device>& devices) {
  const std::lock_guard one_at_a_time(mutex_);
  const auto now = std::chrono::steady_clock::now();
  if (sampled_at_ != std::chrono::steady_clock::time_point() && now - sampled_at_ < options_.fresh)
    return last_;
  std::vector<std::pair<std::string, std::shared_ptr<Worker>>> asked;
  std::unique_lock lock(shared_->mutex);
  for (const auto& device : devices) {
    if (!tells_uuid(device)) continue;
    auto& worker = workers_[device.uuid];
    if (!worker) {
      worker = std::make_shared<Worker>(shared_, device);
      worker->thread = std::thread([worker] { worker->run(); });
    }
    worker->wanted = true;
    asked.emplace_back(device.uuid, worker);
  }
  shared_->changed.notify_all();
  shared_->changed.wait_for(lock, options_.patience, [&] {
    return std::ranges::none_of(asked, [](auto& each) { return each.second->wanted && !each.second->late; });
  });
  last_.clear();
  for (const auto& [uuid, worker] : asked) {
    worker->late = worker->wanted;
    last_[uuid] = worker->wanted ? GpuUsage{} : worker->usage;
  }
  sampled_at_ = std::chrono::steady_clock::now();
  return last_;
}

}  // namespace drover::gpu

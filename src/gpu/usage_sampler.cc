#include "gpu/usage_sampler.h"

#include <algorithm>
#include <utility>

#include "gpu/recognise.h"
#include "gpu/usage_probe.h"

namespace drover::gpu {

struct UsageSampler::Shared : DeviceThreads {
  Shared(Library the_library, Look the_look) : library(std::move(the_library)), look(the_look) {}

  const Library library;
  const Look look;
};

/// One GPU's thread.
struct UsageSampler::Worker {
  Worker(std::shared_ptr<Shared> the_shared, const Device& device)
      : shared(std::move(the_shared)), probe(device) {}

  std::shared_ptr<Shared> shared;
  bool wanted = false;  ///< a look, and it is not over yet
  bool late = false;    ///< somebody has waited for it in vain
  GpuUsage usage;

  void run() {
    std::unique_lock lock(shared->mutex);
    for (;;) {
      shared->changed.wait(lock, [&] { return shared->stopped || wanted; });
      if (shared->stopped) return;
      lock.unlock();
      auto seen = sample();
      lock.lock();
      usage = std::move(seen);
      wanted = late = false;
      shared->changed.notify_all();
    }
  }

 private:
  UsageProbe probe;

  /// The library is let go of at once, so that another driver's can take its place.
  GpuUsage sample() {
    const auto nvml = shared->library();
    if (!nvml || !*nvml) return {};
    switch (shared->look) {
      case Look::kAll:
        return probe.sample(**nvml);
      case Look::kMemory:
        return probe.sample_memory(**nvml);
      case Look::kWork:
        return probe.sample_work(**nvml);
    }
    return {};
  }
};

UsageSampler::UsageSampler(Library library, UsageSamplerOptions options)
    : options_(options),
      shared_(std::make_shared<Shared>(std::move(library), options.look)),
      workers_(shared_) {}

UsageSampler::~UsageSampler() = default;

std::map<std::string, GpuUsage> UsageSampler::sample(const std::vector<Device>& devices) {
  const std::lock_guard one_at_a_time(mutex_);
  const auto now = std::chrono::steady_clock::now();
  if (sampled_at_ != std::chrono::steady_clock::time_point() && now - sampled_at_ < options_.fresh)
    return last_;
  std::map<std::string, Worker*> asked;
  std::unique_lock lock(shared_->mutex);
  for (const auto& device : devices) {
    if (!tells_uuid(device)) continue;
    auto& worker = workers_.at(device);
    worker.wanted = true;
    asked[device.uuid] = &worker;
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

#pragma once

// What all GPUs of a machine do now. Each GPU has a thread of its own that alone calls NVML for it here, so a
// call that does not return holds up no other GPU, and a sample takes as long as one GPU does, `patience` at
// most. Whoever asks within `fresh` of the last sample is told that one.
//
//   UsageSampler sampler([&] { return hardware.shared_nvml(); }, {});
//   const auto usage = sampler.sample(inventory.devices);
//
// Thread safe; samples are taken one after the other. The destructor waits a second; threads whose call does
// not return are left behind with what they need, and touch nothing else.

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gpu/device.h"
#include "gpu/nvml.h"
#include "gpu/per_device.h"
#include "gpu/usage.h"

namespace drover::gpu {

/// How much is looked at: what few calls tell is for who looks often.
enum class Look {
  kAll,
  kMemory,  ///< of the GPU and its processes
  kWork,    ///< the same, and how busy they keep it
};

struct UsageSamplerOptions {
  std::chrono::milliseconds patience = std::chrono::seconds(3);
  std::chrono::milliseconds fresh = std::chrono::seconds(1);
  Look look = Look::kAll;
};

class UsageSampler {
 public:
  /// The library as it is now, or why there is none; called on the threads of the GPUs.
  using Library = std::function<SharedNvml()>;

  explicit UsageSampler(Library library, UsageSamplerOptions options = {});
  ~UsageSampler();
  UsageSampler(const UsageSampler&) = delete;
  UsageSampler& operator=(const UsageSampler&) = delete;

  /// By UUID, of all that tell their UUID. A GPU that did not answer in time has `answers` false; one that
  /// did not for longer is not waited for.
  std::map<std::string, GpuUsage> sample(const std::vector<Device>& devices);

 private:
  struct Shared;
  struct Worker;

  const UsageSamplerOptions options_;
  std::shared_ptr<Shared> shared_;
  std::mutex mutex_;  ///< one sample at a time
  std::chrono::steady_clock::time_point sampled_at_;
  std::map<std::string, GpuUsage> last_;
  PerDevice<Shared, Worker> workers_;
};

}  // namespace drover::gpu

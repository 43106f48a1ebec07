#pragma once

// Asking NVML what one GPU does. Every call may block for as long as the driver does; a probe belongs to one
// thread.

#include "gpu/device_handle.h"
#include "gpu/nvml.h"
#include "gpu/usage.h"

namespace drover::gpu {

/// The most processes of one GPU that are told of; those with the lowest ids.
inline constexpr std::size_t kMostProcesses = 1024;

class UsageProbe {
 public:
  explicit UsageProbe(const Device& device) : handle_(device) {}

  /// What processes did is told for the time since the last look.
  GpuUsage sample(const Nvml& nvml);
  /// The same of nothing but memory, in few calls, and of all processes.
  GpuUsage sample_memory(const Nvml& nvml);
  /// That, and what the GPU and its processes did.
  GpuUsage sample_work(const Nvml& nvml);

 private:
  std::vector<ProcessUsage> processes(const Nvml& nvml, std::size_t most);
  void add_utilization(const Nvml& nvml, std::vector<ProcessUsage>& processes);

  DeviceHandle handle_;
  unsigned long long seen_until_ = 0;  ///< the driver's time of the newest sample of a process
};

}  // namespace drover::gpu

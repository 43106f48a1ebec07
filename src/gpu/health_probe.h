#pragma once

// Asking NVML how one GPU is: what it answers when it is polled, and the errors that it reports as they
// happen. Every call may block for as long as the driver does. A probe belongs to one thread.

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "gpu/device.h"
#include "gpu/device_handle.h"
#include "gpu/health.h"
#include "gpu/nvml.h"

namespace drover::gpu {

/// Each GPU has an event set of its own: so a wait that fails concerns no other. A library may hand a set
/// what happens to another GPU all the same.
class EventSource {
 public:
  /// None when the card, the driver or the library cannot tell errors as they happen.
  static std::unique_ptr<EventSource> open(const SharedNvml& nvml, nvmlDevice_t handle);
  ~EventSource();
  EventSource(const EventSource&) = delete;
  EventSource& operator=(const EventSource&) = delete;

  struct Waited {
    bool failed = false;    ///< this source is of no more use
    bool happened = false;  ///< something: the GPU is worth a poll
    std::optional<XidSeen>
        xid;  ///< the UUID is that of the GPU that it names; "" for the one that is waited for
  };
  /// Until something happens, or the time is over.
  Waited wait(std::chrono::milliseconds longest) const;

 private:
  EventSource(SharedNvml nvml, nvmlDevice_t handle, nvmlEventSet_t set)
      : nvml_(std::move(nvml)), handle_(handle), set_(set) {}
  std::string whose(nvmlDevice_t device) const;

  SharedNvml nvml_;
  nvmlDevice_t handle_ = nullptr;
  nvmlEventSet_t set_ = nullptr;
};

class HealthProbe {
 public:
  explicit HealthProbe(const Device& device) : handle_(device) {}

  /// What it answers. A GPU that is found again under its UUID is the same GPU.
  GpuPolled poll(const Result<Nvml>& nvml);
  /// Of the library that the last poll used; null when it was not found.
  nvmlDevice_t handle() const { return handle_.get(); }
  /// Before the poll with another library.
  void forget_handle() { handle_.forget(); }

 private:
  void ask_memory(const Nvml& nvml, GpuPolled& polled) const;
  void ask_action(const Nvml& nvml, GpuPolled& polled);

  DeviceHandle handle_;
  bool tells_actions_ = false;  ///< it has before
};

}  // namespace drover::gpu

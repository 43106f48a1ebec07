#pragma once

// A GPU as NVML hands it out: found again by its place and its UUID, since indices change while GPUs come and
// go. Belongs to one thread; every call may block for as long as the driver does.

#include <optional>
#include <string>

#include "gpu/device.h"
#include "gpu/nvml.h"

namespace drover::gpu {

class DeviceHandle {
 public:
  explicit DeviceHandle(const Device& device) : uuid_(device.uuid), pci_(device.pci) {}

  const std::string& uuid() const { return uuid_; }
  /// Of the library that renew() was last called with; null when it was not found.
  nvmlDevice_t get() const { return handle_; }
  /// Looks whether the handle is still this GPU's, and finds it anew if not.
  nvmlReturn_t renew(const Nvml& nvml);
  /// Before the next library.
  void forget() { handle_ = nullptr; }

 private:
  nvmlReturn_t find(const Nvml& nvml);
  bool is_ours(const Nvml& nvml, nvmlDevice_t handle, nvmlReturn_t& code) const;

  std::string uuid_;
  std::optional<PciAddress> pci_;
  nvmlDevice_t handle_ = nullptr;
};

}  // namespace drover::gpu

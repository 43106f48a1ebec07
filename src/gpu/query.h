#pragma once

// Asking NVML about one device in discovery: what fails is recorded at the device, what is merely not
// supported is an absent value. Not thread safe; refers to the Nvml and the Device given.

#include <string>

#include "gpu/device.h"
#include "gpu/health.h"
#include "gpu/nvml.h"

namespace drover::gpu {

class Query {
 public:
  Query(const Nvml& nvml, nvmlDevice_t handle, Device& device)
      : nvml_(nvml), handle_(handle), device_(device) {}

  const NvmlFunctions& functions() const { return nvml_.functions(); }
  nvmlDevice_t handle() const { return handle_; }

  /// Whether `function(handle, arguments...)` succeeded. `name` is what problems call it.
  template <typename Function, typename... Arguments>
  bool ask(const char* name, Function function, Arguments... arguments) {
    if (function == nullptr) return false;
    const auto code = function(handle_, arguments...);
    if (code != NVML_SUCCESS) record(name, code);
    return code == NVML_SUCCESS;
  }

 private:
  void record(const char* name, nvmlReturn_t code) {
    if (code == NVML_ERROR_NOT_SUPPORTED || code == NVML_ERROR_FUNCTION_NOT_FOUND) return;
    const auto text = nvml_.error_text(code);
    device_.problems.push_back({ErrorKind::kUnavailable, std::string(name) + ": " + text, "", ""});
    if (device_.unhealthy.empty()) device_.unhealthy = gone_text(code);
  }

  const Nvml& nvml_;
  nvmlDevice_t handle_;
  Device& device_;
};

}  // namespace drover::gpu

// Limits that the driver sets to what a control group holds of a GPU.

#include <unistd.h>

#include "sim/entry/call.h"

using namespace drover::sim;

namespace {

nvmlReturn_t code_of(const drover::Status& status) {
  if (status) return NVML_SUCCESS;
  switch (status.error().kind) {
    case drover::ErrorKind::kExhausted:
      return NVML_ERROR_INSUFFICIENT_RESOURCES;
    case drover::ErrorKind::kTimeout:
      return NVML_ERROR_TIMEOUT;
    default:
      return NVML_ERROR_NO_PERMISSION;
  }
}

/// Runs `body(const Call&, Group)` where the driver limits memory, for the group that `name_space` names.
template <typename Body>
nvmlReturn_t with_group(const char* function, nvmlDevice_t device, const char* name_space, Body body) {
  return with_device_or_part(
      function, device,
      [&](const Call& call) {
        if (!call.machine.limits_memory()) return NVML_ERROR_FUNCTION_NOT_FOUND;
        const auto mig = call.machine.mig().current();
        if ((*mig)[call.device.position].enabled) return NVML_ERROR_NOT_SUPPORTED;
        const auto group = name_space == nullptr ? 0 : group_at(name_space, call.machine.plays_groups());
        return group == 0 ? NVML_ERROR_INVALID_ARGUMENT : body(call, group);
      },
      [](const Call&, const MigPart&) { return NVML_ERROR_NOT_SUPPORTED; });
}

}  // namespace

nvmlReturn_t nvmlDeviceSetMemoryLimits_v1(nvmlDevice_t device, nvmlSetMemoryLimits_v1_t* limits) {
  if (limits == nullptr || limits->softLimit > limits->hardLimit) return NVML_ERROR_INVALID_ARGUMENT;
  return with_group(__func__, device, limits->nameSpace, [&](const Call& call, Group group) {
    if (::geteuid() != 0) return NVML_ERROR_NO_PERMISSION;
    return code_of(
        call.machine.limits().set(call.device.position, group, limits->softLimit, limits->hardLimit));
  });
}

nvmlReturn_t nvmlDeviceGetMemoryLimits_v1(nvmlDevice_t device, nvmlGetMemoryLimits_v1_t* limits) {
  if (limits == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  return with_group(__func__, device, limits->nameSpace, [&](const Call& call, Group group) {
    const auto found = call.machine.limits().of(call.device.position, group);
    limits->softLimit = found.soft;
    limits->hardLimit = found.hard;
    limits->currentUsed = found.used;
    return NVML_SUCCESS;
  });
}

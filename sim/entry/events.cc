// Event sets and waiting on them.

#include "sim/events.h"

#include <chrono>
#include <thread>

#include "sim/entry/call.h"

using namespace drover::sim;

namespace {

constexpr auto kLookEvery = std::chrono::milliseconds(20);

unsigned long long supported_types(const Model& model) {
  return nvmlEventTypeXidCriticalError | nvmlEventTypePState | nvmlEventTypeClock |
         (model.ecc ? nvmlEventTypeSingleBitEccError | nvmlEventTypeDoubleBitEccError : nvmlEventTypeNone);
}

/// Waits for an XID and passes it to `deliver(const XidEvent&)`. A GPU that is lost does not end the wait:
/// the others still have events to tell.
template <typename Deliver>
nvmlReturn_t wait(nvmlEventSet_t handle, unsigned int timeout_ms, Deliver deliver) noexcept {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  for (;;) {
    const auto result = with_session([&](const Session& session) {
      const auto set = session.events->find(handle);
      if (!set) return NVML_ERROR_INVALID_ARGUMENT;
      const auto event = set->next(*session.machine);
      if (!event) return NVML_ERROR_TIMEOUT;
      deliver(*event);
      return NVML_SUCCESS;
    });
    if (result != NVML_ERROR_TIMEOUT || std::chrono::steady_clock::now() >= deadline) return result;
    std::this_thread::sleep_for(kLookEvery);
  }
}

}  // namespace

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t* set) {
  return with_session([&](const Session& session) {
    return set == nullptr ? NVML_ERROR_INVALID_ARGUMENT : answer(set, session.events->create());
  });
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) {
  return with_session([&](const Session& session) {
    return session.events->free(set) ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
  });
}

nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long* types) {
  return get(__func__, device, types, [](const Call& call) { return supported_types(call.model); });
}

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set) {
  return with_device(__func__, device, [&](const Call& call) {
    const auto events = call.session.events->find(set);
    if (!events) return NVML_ERROR_INVALID_ARGUMENT;
    if ((types & ~supported_types(call.model)) != 0) return NVML_ERROR_NOT_SUPPORTED;
    events->add(call.device, types);
    return NVML_SUCCESS;
  });
}

nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_v1_t* data, unsigned int timeout_ms) {
  if (data == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  return wait(set, timeout_ms, [&](const XidEvent& event) {
    *data = {event.device, nvmlEventTypeXidCriticalError, event.xid.number};
  });
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t* data, unsigned int timeout_ms) {
  if (data == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  return wait(set, timeout_ms, [&](const XidEvent& event) {
    *data = {event.device, nvmlEventTypeXidCriticalError, event.xid.number,
             event.xid.gpu_instance.value_or(NVML_NO_INSTANCE_ID),
             event.xid.compute_instance.value_or(NVML_NO_INSTANCE_ID)};
  });
}

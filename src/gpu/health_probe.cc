#include "gpu/health_probe.h"

#include <algorithm>

namespace drover::gpu {
namespace {

/// Single-bit errors were corrected, so nobody needs to know of each. The last two say that a poll is due.
constexpr auto kEventTypes = nvmlEventTypeXidCriticalError | nvmlEventTypeDoubleBitEccError |
                             nvmlEventTypeGpuUnavailableError | nvmlEventTypeGpuRecoveryAction;

std::optional<std::uint32_t> instance_id(unsigned int id) {
  return id == NVML_NO_INSTANCE_ID ? std::nullopt : std::optional<std::uint32_t>(id);
}

/// What a call says that failed where it should not.
void note_failure(nvmlReturn_t code, GpuPolled& polled) {
  polled.code = code;
  switch (code) {
    case NVML_ERROR_GPU_IS_LOST:
    case NVML_ERROR_NOT_FOUND:
    case NVML_ERROR_GPU_NOT_FOUND:
    case NVML_ERROR_UNINITIALIZED:
    case NVML_ERROR_DRIVER_NOT_LOADED:
      polled.answer = Answer::kLost;
      break;
    case NVML_ERROR_RESET_REQUIRED:
      polled.action = RecoveryAction::kReset;
      break;
    default:
      polled.answer = Answer::kSilent;
  }
}

/// Whether a query that not every card can answer was answered. Other failures than the grave ones mean
/// nothing.
bool answered(nvmlReturn_t code, GpuPolled& polled) {
  if (code == NVML_ERROR_GPU_IS_LOST || code == NVML_ERROR_RESET_REQUIRED) note_failure(code, polled);
  return code == NVML_SUCCESS;
}

}  // namespace

std::unique_ptr<EventSource> EventSource::open(const SharedNvml& nvml, nvmlDevice_t handle) {
  const auto& f = (*nvml)->functions();
  const bool can_wait = f.event_set_wait_v2 != nullptr || f.event_set_wait_v1 != nullptr;
  if (f.event_set_create == nullptr || f.event_set_free == nullptr || !can_wait ||
      f.supported_event_types == nullptr || f.register_events == nullptr)
    return nullptr;
  unsigned long long types = 0;
  if (f.supported_event_types(handle, &types) != NVML_SUCCESS) return nullptr;
  if ((types & nvmlEventTypeXidCriticalError) == 0) return nullptr;
  nvmlEventSet_t set = nullptr;
  if (f.event_set_create(&set) != NVML_SUCCESS) return nullptr;
  std::unique_ptr<EventSource> source(new EventSource(nvml, handle, set));
  return f.register_events(handle, types & kEventTypes, set) == NVML_SUCCESS ? std::move(source) : nullptr;
}

EventSource::~EventSource() {
  (*nvml_)->functions().event_set_free(set_);
}

/// One that does not tell its name any more is the one that was asked about: another would not be named here.
std::string EventSource::whose(nvmlDevice_t device) const {
  const auto uuid = (*nvml_)->functions().uuid;
  char text[96] = "";
  if (device == nullptr || device == handle_ || uuid == nullptr) return "";
  return uuid(device, text, sizeof text) == NVML_SUCCESS ? text : "";
}

EventSource::Waited EventSource::wait(std::chrono::milliseconds longest) const {
  const auto& f = (*nvml_)->functions();
  const auto timeout = static_cast<unsigned int>(longest.count());
  nvmlEventData_t event{};
  event.gpuInstanceId = NVML_NO_INSTANCE_ID;
  event.computeInstanceId = NVML_NO_INSTANCE_ID;
  nvmlReturn_t code = NVML_SUCCESS;
  if (f.event_set_wait_v2 != nullptr) {
    code = f.event_set_wait_v2(set_, &event, timeout);
  } else {
    nvmlEventData_v1_t old{};
    code = f.event_set_wait_v1(set_, &old, timeout);
    event.device = old.device;
    event.eventType = old.eventType;
    event.eventData = old.eventData;
  }
  Waited waited{.failed = code != NVML_SUCCESS && code != NVML_ERROR_TIMEOUT,
                .happened = code == NVML_SUCCESS};
  if (waited.happened && event.eventType == nvmlEventTypeXidCriticalError)
    waited.xid = XidSeen{whose(event.device),
                         event.eventData,
                         {instance_id(event.gpuInstanceId), instance_id(event.computeInstanceId)}};
  return waited;
}

void HealthProbe::ask_memory(const Nvml& nvml, GpuPolled& polled) const {
  const auto& f = nvml.functions();
  unsigned long long errors = 0;
  if (f.total_ecc_errors != nullptr &&
      answered(
          f.total_ecc_errors(handle_.get(), NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC, &errors),
          polled))
    polled.uncorrected = errors;
  nvmlEnableState_t pending{};
  if (f.retired_pages_pending != nullptr &&
      answered(f.retired_pages_pending(handle_.get(), &pending), polled))
    polled.pages_pending = pending == NVML_FEATURE_ENABLED;
  unsigned int corrected = 0;
  unsigned int uncorrected = 0;
  unsigned int rows_pending = 0;
  unsigned int rows_failed = 0;
  if (f.remapped_rows != nullptr &&
      answered(f.remapped_rows(handle_.get(), &corrected, &uncorrected, &rows_pending, &rows_failed),
               polled)) {
    polled.rows_pending = rows_pending != 0;
    polled.rows_failed = rows_failed != 0;
  }
}

void HealthProbe::ask_action(const Nvml& nvml, GpuPolled& polled) {
  const auto ask = nvml.functions().field_values;
  if (ask == nullptr || polled.action) return;
  nvmlFieldValue_t field{};
  field.fieldId = NVML_FI_DEV_GET_GPU_RECOVERY_ACTION;
  auto code = ask(handle_.get(), 1, &field);
  if (code == NVML_SUCCESS) code = field.nvmlReturn;
  if (answered(code, polled)) {
    polled.action = static_cast<RecoveryAction>(std::min<std::uint64_t>(unsigned_value(field), 255));
    tells_actions_ = true;
    return;
  }
  // It could tell before: now that it fails nobody knows, and no news is no good news.
  const bool unable = code == NVML_ERROR_NOT_SUPPORTED || code == NVML_ERROR_INVALID_ARGUMENT;
  if (tells_actions_ && !unable) note_failure(code, polled);
}

GpuPolled HealthProbe::poll(const Result<Nvml>& nvml) {
  GpuPolled polled{.uuid = handle_.uuid()};
  if (!nvml) {
    note_failure(NVML_ERROR_DRIVER_NOT_LOADED, polled);
    return polled;
  }
  if (const auto code = handle_.renew(*nvml); code != NVML_SUCCESS) {
    note_failure(code, polled);
    return polled;
  }
  ask_memory(*nvml, polled);
  ask_action(*nvml, polled);
  return polled;
}

}  // namespace drover::gpu

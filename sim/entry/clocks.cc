// Clocks, power, heat and load.

#include <ctime>

#include "sim/entry/mig_call.h"
#include "sim/load.h"

using namespace drover::sim;

namespace {

constexpr unsigned int kClockStepMhz = 15;
constexpr unsigned long long kEveryClockReason = 0x1ff;
constexpr unsigned int kSamplePeriodUs = 167000;

bool valid(nvmlClockType_t type) {
  return type >= 0 && type < NVML_CLOCK_COUNT;
}

unsigned int max_clock(const Model& model, nvmlClockType_t type) {
  if (type == NVML_CLOCK_MEM) return static_cast<unsigned int>(model.clock_memory_mhz);
  const auto graphics = static_cast<unsigned int>(model.clock_graphics_mhz);
  return type == NVML_CLOCK_VIDEO ? graphics * 9 / 10 : graphics;
}

unsigned int current_clock(const Call& call, nvmlClockType_t type) {
  if (type == NVML_CLOCK_MEM || busy(call.utilization())) return max_clock(call.model, type);
  return static_cast<unsigned int>(call.model.clock_idle_mhz);
}

/// `clock(const Call&)` gives megahertz, or none.
template <typename Clock>
nvmlReturn_t get_clock(const char* function, nvmlDevice_t device, nvmlClockType_t type, unsigned int* mhz,
                       Clock clock) noexcept {
  return with_device(function, device, [&](const Call& call) {
    return valid(type) ? answer(mhz, clock(call)) : NVML_ERROR_INVALID_ARGUMENT;
  });
}

/// Consumer cards have no application clocks, and nothing has them for video.
std::optional<unsigned int> application_clock(const Call& call, nvmlClockType_t type) {
  if (call.model.brand == "geforce" || type == NVML_CLOCK_VIDEO) return std::nullopt;
  return max_clock(call.model, type);
}

/// An engine that cards have since `compute_major`; nothing uses it unless the fault file says so.
nvmlReturn_t engine(const char* function, nvmlDevice_t device, int compute_major,
                    unsigned int Utilization::* used, unsigned int* percent,
                    unsigned int* period_us) noexcept {
  return with_device(function, device, [&](const Call& call) {
    if (period_us == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    if (call.model.compute_major < compute_major || !tells_load(call)) return NVML_ERROR_NOT_SUPPORTED;
    *period_us = kSamplePeriodUs;
    return answer(percent, used == nullptr ? 0 : call.utilization().*used);
  });
}

unsigned long long now_us() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<unsigned long long>(now.tv_sec) * 1'000'000 +
         static_cast<unsigned long long>(now.tv_nsec) / 1000;
}

std::optional<unsigned int> load_of(const Call& call, unsigned int Utilization::* used) {
  return tells_load(call) ? std::optional(call.utilization().*used) : std::nullopt;
}

std::optional<unsigned int> sample_of(const Call& call, nvmlSamplingType_t type) {
  switch (type) {
    case NVML_TOTAL_POWER_SAMPLES:
      return power_mw(call.model, call.utilization());
    case NVML_GPU_UTILIZATION_SAMPLES:
      return load_of(call, &Utilization::sm);
    case NVML_MEMORY_UTILIZATION_SAMPLES:
      return load_of(call, &Utilization::memory);
    case NVML_ENC_UTILIZATION_SAMPLES:
      return load_of(call, &Utilization::encoder);
    case NVML_DEC_UTILIZATION_SAMPLES:
      return load_of(call, &Utilization::decoder);
    case NVML_PROCESSOR_CLK_SAMPLES:
      return current_clock(call, NVML_CLOCK_SM);
    case NVML_MEMORY_CLK_SAMPLES:
      return current_clock(call, NVML_CLOCK_MEM);
    default:
      return std::nullopt;
  }
}

unsigned long long clock_reasons(const Call& call) {
  return busy(call.utilization()) ? nvmlClocksThrottleReasonNone : nvmlClocksThrottleReasonGpuIdle;
}

nvmlPstates_t performance_state(const Call& call) {
  return busy(call.utilization()) ? NVML_PSTATE_0 : NVML_PSTATE_8;
}

unsigned int temperature_of(const Call& call) {
  if (const auto& stated = call.faults.temperature_c) return static_cast<unsigned int>(*stated);
  return temperature_c(call.model, call.utilization());
}

unsigned int limit_mw(const Model& model) {
  return 1000 * static_cast<unsigned int>(model.power_limit_w);
}

}  // namespace

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int* mhz) {
  return get_clock(__func__, device, type, mhz, [&](const Call& call) { return current_clock(call, type); });
}
nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int* mhz) {
  return get_clock(__func__, device, type, mhz,
                   [&](const Call& call) { return max_clock(call.model, type); });
}
nvmlReturn_t nvmlDeviceGetClock(nvmlDevice_t device, nvmlClockType_t type, nvmlClockId_t id,
                                unsigned int* mhz) {
  if (id < 0 || id >= NVML_CLOCK_ID_COUNT) return NVML_ERROR_INVALID_ARGUMENT;
  return get_clock(__func__, device, type, mhz, [&](const Call& call) {
    return id == NVML_CLOCK_ID_CURRENT ? current_clock(call, type) : max_clock(call.model, type);
  });
}
nvmlReturn_t nvmlDeviceGetApplicationsClock(nvmlDevice_t device, nvmlClockType_t type, unsigned int* mhz) {
  return get_clock(__func__, device, type, mhz,
                   [&](const Call& call) { return application_clock(call, type); });
}
nvmlReturn_t nvmlDeviceGetDefaultApplicationsClock(nvmlDevice_t device, nvmlClockType_t type,
                                                   unsigned int* mhz) {
  return get_clock(__func__, device, type, mhz,
                   [&](const Call& call) { return application_clock(call, type); });
}
nvmlReturn_t nvmlDeviceGetMaxCustomerBoostClock(nvmlDevice_t device, nvmlClockType_t type,
                                                unsigned int* mhz) {
  return get_clock(__func__, device, type, mhz,
                   [&](const Call& call) { return application_clock(call, type); });
}

nvmlReturn_t nvmlDeviceGetSupportedMemoryClocks(nvmlDevice_t device, unsigned int* count, unsigned int* mhz) {
  return with_device(__func__, device, [&](const Call& call) {
    return answer_list(count, mhz, std::vector{max_clock(call.model, NVML_CLOCK_MEM)});
  });
}

nvmlReturn_t nvmlDeviceGetSupportedGraphicsClocks(nvmlDevice_t device, unsigned int memory_mhz,
                                                  unsigned int* count, unsigned int* mhz) {
  return with_device(__func__, device, [&](const Call& call) {
    if (memory_mhz != max_clock(call.model, NVML_CLOCK_MEM)) return NVML_ERROR_NOT_FOUND;
    std::vector<unsigned int> clocks;
    const auto lowest = std::max(static_cast<unsigned int>(call.model.clock_idle_mhz), kClockStepMhz);
    for (auto clock = max_clock(call.model, NVML_CLOCK_GRAPHICS); clock >= lowest; clock -= kClockStepMhz)
      clocks.push_back(clock);
    return answer_list(count, mhz, clocks);
  });
}

nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device, unsigned long long* reasons) {
  return get(__func__, device, reasons, clock_reasons);
}
nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device, unsigned long long* reasons) {
  return get(__func__, device, reasons, clock_reasons);
}
nvmlReturn_t nvmlDeviceGetSupportedClocksEventReasons(nvmlDevice_t device, unsigned long long* reasons) {
  return get(__func__, device, reasons, [](const Call&) { return kEveryClockReason; });
}
nvmlReturn_t nvmlDeviceGetSupportedClocksThrottleReasons(nvmlDevice_t device, unsigned long long* reasons) {
  return get(__func__, device, reasons, [](const Call&) { return kEveryClockReason; });
}

nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t device, nvmlPstates_t* state) {
  return get(__func__, device, state, performance_state);
}
nvmlReturn_t nvmlDeviceGetPowerState(nvmlDevice_t device, nvmlPstates_t* state) {
  return get(__func__, device, state, performance_state);
}

nvmlReturn_t nvmlDeviceGetPowerManagementMode(nvmlDevice_t device, nvmlEnableState_t* mode) {
  return get(__func__, device, mode, [](const Call&) { return NVML_FEATURE_ENABLED; });
}
nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int* milliwatts) {
  return get(__func__, device, milliwatts,
             [](const Call& call) { return power_mw(call.model, call.utilization()); });
}
nvmlReturn_t nvmlDeviceGetPowerManagementLimit(nvmlDevice_t device, unsigned int* milliwatts) {
  return get(__func__, device, milliwatts, [](const Call& call) { return limit_mw(call.model); });
}
nvmlReturn_t nvmlDeviceGetPowerManagementDefaultLimit(nvmlDevice_t device, unsigned int* milliwatts) {
  return get(__func__, device, milliwatts, [](const Call& call) { return limit_mw(call.model); });
}
nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned int* milliwatts) {
  return get(__func__, device, milliwatts, [](const Call& call) { return limit_mw(call.model); });
}
nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t device, unsigned int* least,
                                                          unsigned int* most) {
  return with_device(__func__, device, [&](const Call& call) {
    if (least == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    *least = 1000 * static_cast<unsigned int>(call.model.power_min_w);
    return answer(most, limit_mw(call.model));
  });
}
nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long* millijoules) {
  return get(__func__, device, millijoules, [](const Call& call) -> std::optional<unsigned long long> {
    if (call.model.compute_major < 7) return std::nullopt;
    timespec up{};
    clock_gettime(CLOCK_BOOTTIME, &up);
    return static_cast<unsigned long long>(up.tv_sec) * 1000 *
           static_cast<unsigned int>(call.model.power_idle_w);
  });
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensor,
                                      unsigned int* degrees) {
  if (sensor != NVML_TEMPERATURE_GPU) return NVML_ERROR_INVALID_ARGUMENT;
  return get(__func__, device, degrees, temperature_of);
}
nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device, nvmlTemperature_v1_t* temperature) {
  return with_device(__func__, device, [&](const Call& call) {
    if (temperature == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    if (temperature->version != NVML_STRUCT_VERSION(Temperature, 1))
      return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (temperature->sensorType != NVML_TEMPERATURE_GPU) return NVML_ERROR_INVALID_ARGUMENT;
    return answer(&temperature->temperature, temperature_of(call));
  });
}
nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device, nvmlTemperatureThresholds_t threshold,
                                               unsigned int* degrees) {
  return with_device(__func__, device, [&](const Call& call) {
    if (threshold == NVML_TEMPERATURE_THRESHOLD_SHUTDOWN)
      return answer(degrees, call.model.temperature_shutdown_c);
    if (threshold == NVML_TEMPERATURE_THRESHOLD_SLOWDOWN)
      return answer(degrees, call.model.temperature_slowdown_c);
    const bool known = threshold >= 0 && threshold < NVML_TEMPERATURE_THRESHOLD_COUNT;
    return known ? NVML_ERROR_NOT_SUPPORTED : NVML_ERROR_INVALID_ARGUMENT;
  });
}
nvmlReturn_t nvmlDeviceGetFanSpeed(nvmlDevice_t device, unsigned int* percent) {
  return get(__func__, device, percent, [](const Call& call) { return call.model.fan_percent; });
}
nvmlReturn_t nvmlDeviceGetNumFans(nvmlDevice_t device, unsigned int* count) {
  return get(__func__, device, count, [](const Call& call) { return call.model.fan_percent ? 1 : 0; });
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t* utilization) {
  return with_device(__func__, device, [&](const Call& call) {
    if (!tells_load(call)) return NVML_ERROR_NOT_SUPPORTED;
    const auto now = call.utilization();
    return answer(utilization, nvmlUtilization_t{now.sm, now.memory});
  });
}
nvmlReturn_t nvmlDeviceGetEncoderUtilization(nvmlDevice_t device, unsigned int* percent,
                                             unsigned int* period_us) {
  return engine(__func__, device, 3, &Utilization::encoder, percent, period_us);
}
nvmlReturn_t nvmlDeviceGetDecoderUtilization(nvmlDevice_t device, unsigned int* percent,
                                             unsigned int* period_us) {
  return engine(__func__, device, 3, &Utilization::decoder, percent, period_us);
}
nvmlReturn_t nvmlDeviceGetJpgUtilization(nvmlDevice_t device, unsigned int* percent,
                                         unsigned int* period_us) {
  return engine(__func__, device, 8, nullptr, percent, period_us);
}
nvmlReturn_t nvmlDeviceGetOfaUtilization(nvmlDevice_t device, unsigned int* percent,
                                         unsigned int* period_us) {
  return engine(__func__, device, 8, nullptr, percent, period_us);
}

// One sample, taken now. Without a buffer the caller asks how much room to bring.
nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, nvmlSamplingType_t type, unsigned long long last_seen,
                                  nvmlValueType_t* value_type, unsigned int* count, nvmlSample_t* samples) {
  return with_device(__func__, device, [&](const Call& call) {
    if (count == nullptr || value_type == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    const auto value = sample_of(call, type);
    if (!value) return NVML_ERROR_INVALID_ARGUMENT;
    const auto now = now_us();
    if (last_seen >= now) return NVML_ERROR_NOT_FOUND;
    *value_type = NVML_VALUE_TYPE_UNSIGNED_INT;
    const auto room = std::exchange(*count, 1);
    if (samples == nullptr) return NVML_SUCCESS;
    if (room == 0) return NVML_ERROR_INSUFFICIENT_SIZE;
    samples[0].timeStamp = now;
    samples[0].sampleValue = {};
    samples[0].sampleValue.uiVal = *value;
    return NVML_SUCCESS;
  });
}

// nvmlDeviceGetFieldValues: many values in one call, each with its own return code.

#include <chrono>
#include <cstdlib>

#include "sim/entry/call.h"
#include "sim/load.h"
#include "sim/topology.h"

using namespace drover::sim;

namespace {

std::optional<std::uint64_t> ecc_field(const Call& call, unsigned int field) {
  if (!call.model.ecc) return std::nullopt;
  switch (field) {
    case NVML_FI_DEV_ECC_CURRENT:
    case NVML_FI_DEV_ECC_PENDING:
      return *call.model.ecc;
    case NVML_FI_DEV_ECC_SBE_VOL_TOTAL:
    case NVML_FI_DEV_ECC_SBE_VOL_DEV:
      return call.faults.ecc_volatile.corrected;
    case NVML_FI_DEV_ECC_DBE_VOL_TOTAL:
    case NVML_FI_DEV_ECC_DBE_VOL_DEV:
      return call.faults.ecc_volatile.uncorrected;
    case NVML_FI_DEV_ECC_SBE_AGG_TOTAL:
    case NVML_FI_DEV_ECC_SBE_AGG_DEV:
      return call.faults.ecc_aggregate.corrected;
    case NVML_FI_DEV_ECC_DBE_AGG_TOTAL:
    case NVML_FI_DEV_ECC_DBE_AGG_DEV:
      return call.faults.ecc_aggregate.uncorrected;
    default:
      return std::nullopt;
  }
}

std::optional<std::uint64_t> repair_field(const Call& call, unsigned int field) {
  const bool remaps = field >= NVML_FI_DEV_REMAPPED_COR;
  if (!call.model.ecc || remaps != call.model.row_remapping) return std::nullopt;
  switch (field) {
    case NVML_FI_DEV_RETIRED_SBE:
      return call.faults.retired.single_bit;
    case NVML_FI_DEV_RETIRED_DBE:
      return call.faults.retired.double_bit;
    case NVML_FI_DEV_RETIRED_PENDING:
    case NVML_FI_DEV_RETIRED_PENDING_DBE:
      return call.faults.retired.pending;
    case NVML_FI_DEV_RETIRED_PENDING_SBE:
      return 0;
    case NVML_FI_DEV_REMAPPED_COR:
      return call.faults.remapped.corrected;
    case NVML_FI_DEV_REMAPPED_UNC:
      return call.faults.remapped.uncorrected;
    case NVML_FI_DEV_REMAPPED_PENDING:
      return call.faults.remapped.pending;
    case NVML_FI_DEV_REMAPPED_FAILURE:
      return call.faults.remapped.failed;
    default:
      return std::nullopt;
  }
}

std::optional<std::uint64_t> nvlink_field(const Call& call, unsigned int field, unsigned int scope) {
  const auto& nvlink = call.machine.profile().nvlink;
  const auto ends = link_ends(call.machine.profile(), call.device.position);
  if (field == NVML_FI_DEV_NVLINK_LINK_COUNT) return ends.size();
  if (field >= NVML_FI_DEV_NVLINK_SPEED_MBPS_L0 && field <= NVML_FI_DEV_NVLINK_SPEED_MBPS_L5)
    scope = field - NVML_FI_DEV_NVLINK_SPEED_MBPS_L0;
  if (field >= NVML_FI_DEV_NVLINK_SPEED_MBPS_L6 && field <= NVML_FI_DEV_NVLINK_SPEED_MBPS_L11)
    scope = 6 + field - NVML_FI_DEV_NVLINK_SPEED_MBPS_L6;
  if (field == NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON) scope = 0;
  const bool sent = field == NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX;
  if (sent || field == NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX) {
    const auto all = sent ? call.faults.nvlink.sent_kib : call.faults.nvlink.received_kib;
    if (ends.empty()) return std::nullopt;
    if (scope == NVML_FI_ALL_LINKS) return all;
    if (scope >= ends.size()) return std::nullopt;
    return all / ends.size() + (scope < all % ends.size() ? 1 : 0);
  }
  if (scope >= ends.size()) return std::nullopt;
  switch (field) {
    case NVML_FI_DEV_NVLINK_GET_STATE:
      return 1;
    case NVML_FI_DEV_NVLINK_GET_VERSION:
      return nvlink.version;
    case NVML_FI_DEV_NVLINK_REMOTE_NVLINK_ID:
      return ends[scope].remote_link;
    case NVML_FI_DEV_NVSWITCH_CONNECTED_LINK_COUNT:
      return nvlink.switches.empty() ? 0 : ends.size();
    default:
      if (field >= NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L0 &&
          field <= NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL)
        return 0;
      return nvlink.speed_mbps;
  }
}

/// Memory and module are only told apart from the GPU by cards that no profile has.
std::optional<std::uint64_t> power_field(const Call& call, unsigned int field, unsigned int scope) {
  if (scope != NVML_POWER_SCOPE_GPU) return std::nullopt;
  switch (field) {
    case NVML_FI_DEV_POWER_AVERAGE:
    case NVML_FI_DEV_POWER_INSTANT:
      return power_mw(call.model, call.utilization());
    case NVML_FI_DEV_POWER_MIN_LIMIT:
      return 1000 * call.model.power_min_w;
    default:
      return 1000 * call.model.power_limit_w;
  }
}

/// Drivers before 565 cannot tell.
std::optional<std::uint64_t> recovery_field(const Call& call) {
  if (call.faults.recovery_action) return *call.faults.recovery_action;
  constexpr int kFirst = 565;
  const bool tells = std::atoi(call.machine.profile().driver_version.c_str()) >= kFirst;
  return tells ? std::optional<std::uint64_t>(NVML_GPU_RECOVERY_ACTION_NONE) : std::nullopt;
}

std::optional<std::uint64_t> value_of(const Call& call, unsigned int field, unsigned int scope) {
  const auto between = [&](unsigned int first, unsigned int last) { return field >= first && field <= last; };
  if (between(NVML_FI_DEV_ECC_CURRENT, NVML_FI_DEV_ECC_DBE_AGG_DEV)) return ecc_field(call, field);
  if (between(NVML_FI_DEV_RETIRED_SBE, NVML_FI_DEV_RETIRED_PENDING) ||
      between(NVML_FI_DEV_RETIRED_PENDING_SBE, NVML_FI_DEV_RETIRED_PENDING_DBE) ||
      between(NVML_FI_DEV_REMAPPED_COR, NVML_FI_DEV_REMAPPED_FAILURE))
    return repair_field(call, field);
  if (between(NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L0, NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL) ||
      between(NVML_FI_DEV_NVLINK_SPEED_MBPS_L0, NVML_FI_DEV_NVLINK_LINK_COUNT) ||
      between(NVML_FI_DEV_NVLINK_SPEED_MBPS_L6, NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX) ||
      between(NVML_FI_DEV_NVLINK_REMOTE_NVLINK_ID, NVML_FI_DEV_NVSWITCH_CONNECTED_LINK_COUNT) ||
      between(NVML_FI_DEV_NVLINK_GET_SPEED, NVML_FI_DEV_NVLINK_GET_VERSION))
    return nvlink_field(call, field, scope);
  if (between(NVML_FI_DEV_POWER_AVERAGE, NVML_FI_DEV_POWER_CURRENT_LIMIT) ||
      field == NVML_FI_DEV_POWER_REQUESTED_LIMIT)
    return power_field(call, field, scope);
  if (field == NVML_FI_DEV_PCIE_REPLAY_COUNTER) return call.faults.pcie.replays;
  if (field == NVML_FI_DEV_MEMORY_TEMP) return call.faults.memory_temperature_c;
  if (field == NVML_FI_DEV_PCIE_REPLAY_ROLLOVER_COUNTER || field == NVML_FI_DEV_C2C_LINK_COUNT) return 0;
  if (field == NVML_FI_DEV_GET_GPU_RECOVERY_ACTION) return recovery_field(call);
  return std::nullopt;
}

}  // namespace

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t* values) {
  return with_device(__func__, device, [&](const Call& call) {
    if (values == nullptr || count < 1) return NVML_ERROR_INVALID_ARGUMENT;
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    for (int i = 0; i < count; ++i) {
      auto& field = values[i];
      const auto value = value_of(call, field.fieldId, field.scopeId);
      field.timestamp = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
      field.latencyUsec = 1;
      field.valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
      field.nvmlReturn = value ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
      field.value.ullVal = value.value_or(0);
    }
    return NVML_SUCCESS;
  });
}

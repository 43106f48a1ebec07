// Memory, and its errors.

#include "sim/entry/mig_call.h"

using namespace drover::sim;

namespace {

constexpr std::uint64_t kMib = 1 << 20;

std::uint64_t used_bytes(const Call& call) {
  return std::min(call.activity().used_bytes(), (call.model.memory_mib - call.model.reserved_mib) * kMib);
}

/// What a process sees whose control group has a limit: that, as if it were the card.
std::optional<nvmlMemory_t> seen_limit(const Call& call) {
  const auto limit = call.machine.limits_memory()
                         ? call.machine.limits().view(call.device.position, call.machine.groups())
                         : std::nullopt;
  if (!limit) return std::nullopt;
  const auto total = std::min(limit->hard, (call.model.memory_mib - call.model.reserved_mib) * kMib);
  const auto used = std::min(limit->used, total);
  return nvmlMemory_t{total, total - used, used};
}

/// Of the GPU instance, whose compute instances share its memory.
nvmlMemory_t memory_of(const Call& call, const MigPart& part) {
  const auto total = part.instance.profile.memory_mib * kMib;
  const auto used = std::min(call.activity().used_bytes(part.instance.id), total);
  return {total, total - used, used};
}

bool valid(nvmlMemoryErrorType_t type, nvmlEccCounterType_t counter) {
  return type >= 0 && type < NVML_MEMORY_ERROR_TYPE_COUNT && counter >= 0 &&
         counter < NVML_ECC_COUNTER_TYPE_COUNT;
}

std::uint64_t ecc_count(const Call& call, nvmlMemoryErrorType_t type, nvmlEccCounterType_t counter) {
  const auto& counts = counter == NVML_VOLATILE_ECC ? call.faults.ecc_volatile : call.faults.ecc_aggregate;
  return type == NVML_MEMORY_ERROR_TYPE_CORRECTED ? counts.corrected : counts.uncorrected;
}

bool retires_pages(const Model& model) {
  return model.ecc && !model.row_remapping;
}

/// Made-up addresses: what counts is how many there are.
nvmlReturn_t retired_pages(const char* function, nvmlDevice_t device, nvmlPageRetirementCause_t cause,
                           unsigned int* count, unsigned long long* addresses,
                           unsigned long long* timestamps) noexcept {
  return with_device(function, device, [&](const Call& call) {
    if (cause < 0 || cause >= NVML_PAGE_RETIREMENT_CAUSE_COUNT) return NVML_ERROR_INVALID_ARGUMENT;
    if (!retires_pages(call.model)) return NVML_ERROR_NOT_SUPPORTED;
    const bool double_bit = cause == NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR;
    std::vector<unsigned long long> pages(double_bit ? call.faults.retired.double_bit
                                                     : call.faults.retired.single_bit);
    for (std::size_t i = 0; i < pages.size(); ++i)
      pages[i] = (double_bit ? 0x100000ULL : 0) + 0x1000 * (i + 1);
    const auto result = answer_list(count, addresses, pages);
    if (result == NVML_SUCCESS && timestamps != nullptr) std::fill_n(timestamps, pages.size(), 0);
    return result;
  });
}

}  // namespace

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* memory) {
  return with_device_or_part(
      __func__, device,
      [&](const Call& call) {
        const auto limit = seen_limit(call);
        const auto total = limit ? limit->total : call.model.memory_mib * kMib;
        const auto used = limit ? limit->used : used_bytes(call) + call.model.reserved_mib * kMib;
        return answer(memory, nvmlMemory_t{total, total - used, used});
      },
      [&](const Call& call, const MigPart& part) { return answer(memory, memory_of(call, part)); });
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t* memory) {
  if (memory == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (memory->version != NVML_STRUCT_VERSION(Memory, 2)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  return with_device_or_part(
      __func__, device,
      [&](const Call& call) {
        const auto limit = seen_limit(call);
        memory->total = limit ? limit->total : call.model.memory_mib * kMib;
        memory->reserved = limit ? 0 : call.model.reserved_mib * kMib;
        memory->used = limit ? limit->used : used_bytes(call);
        memory->free = memory->total - memory->reserved - memory->used;
        return NVML_SUCCESS;
      },
      [&](const Call& call, const MigPart& part) {
        const auto its = memory_of(call, part);
        memory->total = its.total;
        memory->reserved = 0;
        memory->used = its.used;
        memory->free = its.free;
        return NVML_SUCCESS;
      });
}

nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t* memory) {
  const auto of = [](std::uint64_t total) {
    const auto used = 2 * kMib;
    return nvmlBAR1Memory_t{total, total - used, used};
  };
  return with_device_or_part(
      __func__, device, [&](const Call& call) { return answer(memory, of(call.model.bar1_mib * kMib)); },
      [&](const Call& call, const MigPart& part) {
        const auto slices = memory_slices(call.model, part.instance.profile);
        return answer(memory, of(call.model.bar1_mib * kMib * slices / kMemorySlices));
      });
}

nvmlReturn_t nvmlDeviceGetMemoryBusWidth(nvmlDevice_t device, unsigned int* bits) {
  return get(__func__, device, bits, [](const Call& call) { return call.model.memory_bus_bits; });
}

nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, nvmlEnableState_t* current,
                                  nvmlEnableState_t* pending) {
  return with_device(__func__, device, [&](const Call& call) {
    if (pending == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    const auto result = answer(current, call.model.ecc);
    if (result == NVML_SUCCESS) *pending = *current;
    return result;
  });
}

nvmlReturn_t nvmlDeviceGetDefaultEccMode(nvmlDevice_t device, nvmlEnableState_t* mode) {
  return get(__func__, device, mode, [](const Call& call) { return call.model.ecc; });
}

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t type,
                                         nvmlEccCounterType_t counter, unsigned long long* count) {
  const auto counted = [&](const Call& call, unsigned long long errors) {
    if (!valid(type, counter)) return NVML_ERROR_INVALID_ARGUMENT;
    return call.model.ecc ? answer(count, errors) : NVML_ERROR_NOT_SUPPORTED;
  };
  // The fault file does not say in which part of a GPU an error is.
  return with_device_or_part(
      __func__, device, [&](const Call& call) { return counted(call, ecc_count(call, type, counter)); },
      [&](const Call& call, const MigPart&) { return counted(call, 0); });
}

// The simulator's errors are all in the device memory.
nvmlReturn_t nvmlDeviceGetDetailedEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t type,
                                            nvmlEccCounterType_t counter, nvmlEccErrorCounts_t* counts) {
  return with_device(__func__, device, [&](const Call& call) {
    if (!valid(type, counter)) return NVML_ERROR_INVALID_ARGUMENT;
    if (!call.model.ecc) return NVML_ERROR_NOT_SUPPORTED;
    return answer(counts, nvmlEccErrorCounts_t{0, 0, ecc_count(call, type, counter), 0});
  });
}

nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t device, nvmlMemoryErrorType_t type,
                                             nvmlEccCounterType_t counter, nvmlMemoryLocation_t location,
                                             unsigned long long* count) {
  const auto counted = [&](const Call& call, unsigned long long errors) {
    if (!valid(type, counter) || location < 0 || location >= NVML_MEMORY_LOCATION_COUNT)
      return NVML_ERROR_INVALID_ARGUMENT;
    if (!call.model.ecc) return NVML_ERROR_NOT_SUPPORTED;
    return answer(count, location == NVML_MEMORY_LOCATION_DRAM ? errors : 0);
  };
  return with_device_or_part(
      __func__, device, [&](const Call& call) { return counted(call, ecc_count(call, type, counter)); },
      [&](const Call& call, const MigPart&) { return counted(call, 0); });
}

nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t device, nvmlPageRetirementCause_t cause,
                                       unsigned int* count, unsigned long long* addresses) {
  return retired_pages(__func__, device, cause, count, addresses, nullptr);
}

nvmlReturn_t nvmlDeviceGetRetiredPages_v2(nvmlDevice_t device, nvmlPageRetirementCause_t cause,
                                          unsigned int* count, unsigned long long* addresses,
                                          unsigned long long* timestamps) {
  return retired_pages(__func__, device, cause, count, addresses, timestamps);
}

nvmlReturn_t nvmlDeviceGetRetiredPagesPendingStatus(nvmlDevice_t device, nvmlEnableState_t* pending) {
  return get(__func__, device, pending, [](const Call& call) {
    return retires_pages(call.model) ? std::optional(call.faults.retired.pending) : std::nullopt;
  });
}

nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned int* corrected,
                                       unsigned int* uncorrected, unsigned int* pending,
                                       unsigned int* failed) {
  return with_device(__func__, device, [&](const Call& call) {
    if (corrected == nullptr || uncorrected == nullptr || pending == nullptr || failed == nullptr)
      return NVML_ERROR_INVALID_ARGUMENT;
    if (!call.model.row_remapping) return NVML_ERROR_NOT_SUPPORTED;
    const auto& rows = call.faults.remapped;
    *corrected = rows.corrected;
    *uncorrected = rows.uncorrected;
    *pending = rows.pending ? 1 : 0;
    *failed = rows.failed ? 1 : 0;
    return NVML_SUCCESS;
  });
}

nvmlReturn_t nvmlDeviceGetRowRemapperHistogram(nvmlDevice_t device,
                                               nvmlRowRemapperHistogramValues_t* values) {
  return with_device(__func__, device, [&](const Call& call) {
    if (!call.model.row_remapping) return NVML_ERROR_NOT_SUPPORTED;
    constexpr unsigned int kBanks = 640;
    const auto& rows = call.faults.remapped;
    const auto touched = std::min(rows.corrected + rows.uncorrected, kBanks);
    return answer(values, nvmlRowRemapperHistogramValues_t{kBanks - touched, touched, 0, 0, 0});
  });
}

// How GPUs are wired to each other and to the CPUs over PCI Express.

#include "sim/topology.h"

#include <limits>

#include "sim/entry/call.h"

using namespace drover::sim;

namespace {

constexpr unsigned int kWordBits = std::numeric_limits<unsigned long>::digits;

/// Runs `body(const Call&, const nvmlDevice_st& other)` for two devices of the session.
template <typename Body>
nvmlReturn_t with_pair(const char* function, nvmlDevice_t a, nvmlDevice_t b, Body body) noexcept {
  return with_device(function, a, [&](const Call& call) {
    const auto* other = call.machine.find(b);
    return other == nullptr ? NVML_ERROR_INVALID_ARGUMENT : body(call, *other);
  });
}

/// Sets a bit for each number; bits beyond the caller's words are left out, as the real library does.
nvmlReturn_t answer_mask(unsigned int words, unsigned long* mask, const std::vector<int>& bits) {
  if (mask == nullptr || words == 0) return NVML_ERROR_INVALID_ARGUMENT;
  std::fill_n(mask, words, 0UL);
  for (const int bit : bits) {
    const auto word = static_cast<unsigned int>(bit) / kWordBits;
    if (word < words) mask[word] |= 1UL << (static_cast<unsigned int>(bit) % kWordBits);
  }
  return NVML_SUCCESS;
}

nvmlReturn_t cpu_affinity(const char* function, nvmlDevice_t device, unsigned int words,
                          unsigned long* cpus) noexcept {
  return with_device(function, device, [&](const Call& call) {
    return answer_mask(words, cpus, cpus_of(call.machine.profile(), call.gpu));
  });
}

nvmlReturn_t answer_devices(unsigned int* count, nvmlDevice_t* out, const std::vector<nvmlDevice_t>& found) {
  if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (out != nullptr) std::copy_n(found.begin(), std::min<std::size_t>(*count, found.size()), out);
  *count = static_cast<unsigned int>(found.size());
  return NVML_SUCCESS;
}

nvmlGpuP2PStatus_t p2p_status(const Call& call, const nvmlDevice_st& other, nvmlGpuP2PCapsIndex_t index) {
  const bool linked = joined_by_nvlink(call.machine.profile(), call.device.position, other.position);
  const bool near = common_ancestor(call.gpu, *other.gpu) <= NVML_TOPOLOGY_HOSTBRIDGE;
  switch (index) {
    case NVML_P2P_CAPS_INDEX_NVLINK:
    case NVML_P2P_CAPS_INDEX_ATOMICS:
      return linked ? NVML_P2P_STATUS_OK : NVML_P2P_STATUS_NOT_SUPPORTED;
    case NVML_P2P_CAPS_INDEX_PCI:
      return near ? NVML_P2P_STATUS_OK : NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED;
    default:
      if (call.model.brand == "geforce") return NVML_P2P_STATUS_GPU_NOT_SUPPORTED;
      return linked || near ? NVML_P2P_STATUS_OK : NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED;
  }
}

/// Megabytes per second of one lane, by generation.
constexpr unsigned int lane_mbps(int generation) {
  return 250U << static_cast<unsigned int>(generation - 1);
}

}  // namespace

nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t a, nvmlDevice_t b,
                                                 nvmlGpuTopologyLevel_t* level) {
  return with_pair(__func__, a, b, [&](const Call& call, const nvmlDevice_st& other) {
    return answer(level, common_ancestor(call.gpu, *other.gpu));
  });
}

nvmlReturn_t nvmlDeviceGetTopologyNearestGpus(nvmlDevice_t device, nvmlGpuTopologyLevel_t level,
                                              unsigned int* count, nvmlDevice_t* devices) {
  return with_device(__func__, device, [&](const Call& call) {
    std::vector<nvmlDevice_t> found;
    for (auto* other : call.machine.listed())
      if (other != &call.device && common_ancestor(call.gpu, *other->gpu) == level) found.push_back(other);
    return answer_devices(count, devices, found);
  });
}

nvmlReturn_t nvmlSystemGetTopologyGpuSet(unsigned int cpu, unsigned int* count, nvmlDevice_t* devices) {
  return with_session([&](const Session& session) {
    std::vector<nvmlDevice_t> found;
    for (auto* device : session.machine->listed()) {
      const auto& cpus = cpus_of(session.machine->profile(), *device->gpu);
      if (std::binary_search(cpus.begin(), cpus.end(), static_cast<int>(cpu))) found.push_back(device);
    }
    return answer_devices(count, devices, found);
  });
}

nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t a, nvmlDevice_t b, nvmlGpuP2PCapsIndex_t index,
                                    nvmlGpuP2PStatus_t* status) {
  return with_pair(__func__, a, b, [&](const Call& call, const nvmlDevice_st& other) {
    if (index < 0 || index >= NVML_P2P_CAPS_INDEX_UNKNOWN || &other == &call.device)
      return NVML_ERROR_INVALID_ARGUMENT;
    return answer(status, p2p_status(call, other, index));
  });
}

nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned int words, unsigned long* cpus) {
  return cpu_affinity(__func__, device, words, cpus);
}

nvmlReturn_t nvmlDeviceGetCpuAffinityWithinScope(nvmlDevice_t device, unsigned int words, unsigned long* cpus,
                                                 nvmlAffinityScope_t scope) {
  if (scope > NVML_AFFINITY_SCOPE_SOCKET) return NVML_ERROR_INVALID_ARGUMENT;
  return cpu_affinity(__func__, device, words, cpus);
}

nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t device, unsigned int words, unsigned long* nodes,
                                         nvmlAffinityScope_t scope) {
  return with_device(__func__, device, [&](const Call& call) {
    if (scope > NVML_AFFINITY_SCOPE_SOCKET) return NVML_ERROR_INVALID_ARGUMENT;
    return answer_mask(words, nodes, {call.gpu.numa});
  });
}

nvmlReturn_t nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t device, unsigned int* generation) {
  return get(__func__, device, generation, [](const Call& call) { return call.model.pcie_generation; });
}
nvmlReturn_t nvmlDeviceGetGpuMaxPcieLinkGeneration(nvmlDevice_t device, unsigned int* generation) {
  return get(__func__, device, generation, [](const Call& call) { return call.model.pcie_generation; });
}
nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t device, unsigned int* generation) {
  return get(__func__, device, generation, [](const Call& call) { return call.model.pcie_generation; });
}
nvmlReturn_t nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t device, unsigned int* lanes) {
  return get(__func__, device, lanes, [](const Call& call) { return call.model.pcie_lanes; });
}
nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t device, unsigned int* lanes) {
  return get(__func__, device, lanes, [](const Call& call) { return call.model.pcie_lanes; });
}
nvmlReturn_t nvmlDeviceGetPcieSpeed(nvmlDevice_t device, unsigned int* mbps) {
  return get(__func__, device, mbps, [](const Call& call) {
    return lane_mbps(call.model.pcie_generation) * static_cast<unsigned int>(call.model.pcie_lanes);
  });
}
nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t device, nvmlPcieUtilCounter_t counter,
                                         unsigned int* kbps) {
  return with_device(__func__, device, [&](const Call& call) {
    if (counter < 0 || counter >= NVML_PCIE_UTIL_COUNT) return NVML_ERROR_INVALID_ARGUMENT;
    const auto& pcie = call.faults.pcie;
    return answer(kbps, counter == NVML_PCIE_UTIL_TX_BYTES ? pcie.sent_kb : pcie.received_kb);
  });
}
nvmlReturn_t nvmlDeviceGetPcieReplayCounter(nvmlDevice_t device, unsigned int* count) {
  return get(__func__, device, count, [](const Call& call) { return call.faults.pcie.replays; });
}

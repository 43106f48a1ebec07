// A table of functions for the vendor's own tools, beside the public interface. What it holds is not public:
// what is here was learnt by watching nvidia-smi in a debugger: which entry it calls, and with what. The
// tools refuse a library without the table, and do without the entries that are not supported.

#include <array>

#include "sim/entry/call.h"

using namespace drover::sim;

namespace {

constexpr std::size_t kEntries = 512;
constexpr std::size_t kDistanceOfPciDevices = 22;
constexpr std::size_t kProcesses = 212;

nvmlReturn_t unknown_entry() {
  return NVML_ERROR_NOT_SUPPORTED;
}

/// How far apart two PCI devices are, numbered from 0 (a switch, PIX) to 4 (across NUMA nodes, SYS): `topo
/// -m` fills its matrix with it.
nvmlReturn_t distance_of_pci_devices(const char* a, const char* b, unsigned int* distance) {
  nvmlDevice_t first = nullptr;
  nvmlDevice_t second = nullptr;
  if (const auto result = nvmlDeviceGetHandleByPciBusId_v2(a, &first); result != NVML_SUCCESS) return result;
  if (const auto result = nvmlDeviceGetHandleByPciBusId_v2(b, &second); result != NVML_SUCCESS) return result;
  nvmlGpuTopologyLevel_t level = NVML_TOPOLOGY_SYSTEM;
  const auto result = nvmlDeviceGetTopologyCommonAncestor(first, second, &level);
  if (result == NVML_SUCCESS)
    *distance = level <= NVML_TOPOLOGY_SINGLE ? 0 : static_cast<unsigned int>(level) / 10 - 1;
  return result;
}

/// Fills a list, for which `*count` has the room: `--query-compute-apps` shows it. What an entry looks like
/// is not known, so only GPUs that nothing runs on can tell it.
nvmlReturn_t list_processes(nvmlDevice_t device, unsigned int* count, void*) {
  return with_device(__func__, device, [&](const Call& call) {
    return call.activity().processes.empty() ? answer(count, 0) : NVML_ERROR_NOT_SUPPORTED;
  });
}

struct ExportTable {
  using Function = void (*)();

  ExportTable() {
    functions.fill(reinterpret_cast<Function>(&unknown_entry));
    functions[kProcesses] = reinterpret_cast<Function>(&list_processes);
    functions[kDistanceOfPciDevices] = reinterpret_cast<Function>(&distance_of_pci_devices);
  }

  std::size_t size = sizeof(ExportTable);
  std::array<Function, kEntries> functions;
};

}  // namespace

nvmlReturn_t nvmlInternalGetExportTable(const void** table, const void* id) {
  static const ExportTable exports;
  if (table == nullptr || id == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *table = &exports;
  return NVML_SUCCESS;
}

/* A client of NVML in plain C, written from the public API reference alone: it loads the library that the
 * loader finds (or that NVML_LIBRARY names) and prints what it reads, so that tests can hold it against other
 * clients.
 *
 *   driver VERSION cuda VERSION
 *   gpu INDEX UUID PCI MINOR MEMORY_MIB COMPUTE_CAPABILITY ECC MIG NUMA SERIAL NAME...
 *   use INDEX MEMORY_MIB PERCENT
 *   process INDEX PID MEMORY_MIB
 *   pair I J LEVEL NVLINKS
 *
 * Exit status: 0, or 1 with the call that failed on stderr. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/nvml_abi.h"

enum { MAX_GPUS = 64, MAX_NODES = 1024, MAX_PROCESSES = 256 };

/* Every function that is used, resolved by name. */
#define FUNCTIONS(X)                         \
  X(nvmlInit_v2)                             \
  X(nvmlShutdown)                            \
  X(nvmlErrorString)                         \
  X(nvmlSystemGetDriverVersion)              \
  X(nvmlSystemGetCudaDriverVersion_v2)       \
  X(nvmlDeviceGetCount_v2)                   \
  X(nvmlDeviceGetHandleByIndex_v2)           \
  X(nvmlDeviceGetHandleByUUID)               \
  X(nvmlDeviceGetUUID)                       \
  X(nvmlDeviceGetName)                       \
  X(nvmlDeviceGetSerial)                     \
  X(nvmlDeviceGetMinorNumber)                \
  X(nvmlDeviceGetPciInfo_v3)                 \
  X(nvmlDeviceGetMemoryInfo)                 \
  X(nvmlDeviceGetCudaComputeCapability)      \
  X(nvmlDeviceGetUtilizationRates)           \
  X(nvmlDeviceGetComputeRunningProcesses_v3) \
  X(nvmlDeviceGetEccMode)                    \
  X(nvmlDeviceGetMigMode)                    \
  X(nvmlDeviceGetMemoryAffinity)             \
  X(nvmlDeviceGetTopologyCommonAncestor)     \
  X(nvmlDeviceOnSameBoard)                   \
  X(nvmlDeviceGetNvLinkState)                \
  X(nvmlDeviceGetNvLinkRemotePciInfo_v2)     \
  X(nvmlDeviceGetNvLinkRemoteDeviceType)

#define DECLARE(name) __typeof__(&name) name;
static struct {
  FUNCTIONS(DECLARE)
} nvml;

static void die(const char* call, const char* reason) {
  fprintf(stderr, "abi_check: %s: %s\n", call, reason);
  exit(1);
}

/* Calls NVML and gives up unless it succeeds. */
#define MUST(name, ...)                                                             \
  do {                                                                              \
    nvmlReturn_t must_result = nvml.name(__VA_ARGS__);                              \
    if (must_result != NVML_SUCCESS) die(#name, nvml.nvmlErrorString(must_result)); \
  } while (0)

static void load(void) {
  const char* path = getenv("NVML_LIBRARY");
  void* library = dlopen(path ? path : "libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) die("dlopen", dlerror());
#define RESOLVE(name)                          \
  *(void**)&nvml.name = dlsym(library, #name); \
  if (!nvml.name) die("dlsym", #name " is missing");
  FUNCTIONS(RESOLVE)
}

/* "on", "off", or "-" where the card cannot. */
static const char* mode(nvmlReturn_t result, unsigned int value) {
  if (result == NVML_ERROR_NOT_SUPPORTED) return "-";
  if (result != NVML_SUCCESS) die("mode", nvml.nvmlErrorString(result));
  return value ? "on" : "off";
}

static int numa_node(nvmlDevice_t gpu) {
  const unsigned int bits = 8 * sizeof(unsigned long);
  unsigned long nodes[MAX_NODES / 64];
  MUST(nvmlDeviceGetMemoryAffinity, gpu, MAX_NODES / 64, nodes, NVML_AFFINITY_SCOPE_NODE);
  for (unsigned int node = 0; node < MAX_NODES; ++node)
    if (nodes[node / bits] >> (node % bits) & 1) return (int)node;
  return -1;
}

static void print_gpu(unsigned int index, nvmlDevice_t gpu) {
  char uuid[NVML_DEVICE_UUID_BUFFER_SIZE], name[NVML_DEVICE_NAME_BUFFER_SIZE];
  char serial[NVML_DEVICE_SERIAL_BUFFER_SIZE];
  unsigned int minor, mig = 0, mig_pending;
  int major_capability, minor_capability;
  nvmlPciInfo_t pci;
  nvmlMemory_t memory;
  nvmlEnableState_t ecc = NVML_FEATURE_DISABLED, ecc_pending;
  nvmlDevice_t same;

  MUST(nvmlDeviceGetUUID, gpu, uuid, sizeof uuid);
  MUST(nvmlDeviceGetHandleByUUID, uuid, &same);
  if (same != gpu) die("nvmlDeviceGetHandleByUUID", "gave another device");
  MUST(nvmlDeviceGetName, gpu, name, sizeof name);
  MUST(nvmlDeviceGetMinorNumber, gpu, &minor);
  MUST(nvmlDeviceGetPciInfo_v3, gpu, &pci);
  MUST(nvmlDeviceGetMemoryInfo, gpu, &memory);
  MUST(nvmlDeviceGetCudaComputeCapability, gpu, &major_capability, &minor_capability);
  const nvmlReturn_t has_ecc = nvml.nvmlDeviceGetEccMode(gpu, &ecc, &ecc_pending);
  const nvmlReturn_t has_mig = nvml.nvmlDeviceGetMigMode(gpu, &mig, &mig_pending);
  const nvmlReturn_t has_serial = nvml.nvmlDeviceGetSerial(gpu, serial, sizeof serial);
  printf("gpu %u %s %s %u %llu %d.%d %s %s %d %s %s\n", index, uuid, pci.busId, minor, memory.total >> 20,
         major_capability, minor_capability, mode(has_ecc, (unsigned int)ecc), mode(has_mig, mig),
         numa_node(gpu), has_serial == NVML_SUCCESS ? serial : "-", name);
}

/* What runs on it, and how much that uses of it. */
static void print_use(unsigned int index, nvmlDevice_t gpu) {
  nvmlMemory_t memory;
  nvmlUtilization_t utilization;
  nvmlProcessInfo_t processes[MAX_PROCESSES];
  unsigned int count = MAX_PROCESSES;
  MUST(nvmlDeviceGetMemoryInfo, gpu, &memory);
  const nvmlReturn_t tells_load = nvml.nvmlDeviceGetUtilizationRates(gpu, &utilization);
  printf("use %u %llu %d\n", index, memory.used >> 20,
         tells_load == NVML_SUCCESS ? (int)utilization.gpu : -1);
  MUST(nvmlDeviceGetComputeRunningProcesses_v3, gpu, &count, processes);
  for (unsigned int i = 0; i < count; ++i)
    printf("process %u %u %llu\n", index, processes[i].pid, processes[i].usedGpuMemory >> 20);
}

/* NVLinks from one GPU to another, or to the switches that both hang on. */
static int nvlinks(nvmlDevice_t from, nvmlDevice_t to) {
  nvmlPciInfo_t target, remote;
  int direct = 0, to_switch = 0, peer_to_switch = 0;
  MUST(nvmlDeviceGetPciInfo_v3, to, &target);
  for (unsigned int link = 0; link < NVML_NVLINK_MAX_LINKS; ++link) {
    nvmlEnableState_t active;
    nvmlIntNvLinkDeviceType_t type;
    if (nvml.nvmlDeviceGetNvLinkState(to, link, &active) == NVML_SUCCESS && active &&
        nvml.nvmlDeviceGetNvLinkRemoteDeviceType(to, link, &type) == NVML_SUCCESS)
      peer_to_switch += type == NVML_NVLINK_DEVICE_TYPE_SWITCH;
    if (nvml.nvmlDeviceGetNvLinkState(from, link, &active) != NVML_SUCCESS || !active) continue;
    MUST(nvmlDeviceGetNvLinkRemoteDeviceType, from, link, &type);
    MUST(nvmlDeviceGetNvLinkRemotePciInfo_v2, from, link, &remote);
    to_switch += type == NVML_NVLINK_DEVICE_TYPE_SWITCH;
    direct += type == NVML_NVLINK_DEVICE_TYPE_GPU && strcmp(remote.busId, target.busId) == 0;
  }
  return peer_to_switch > 0 && to_switch > 0 ? to_switch : direct;
}

static const char* level_name(nvmlDevice_t a, nvmlDevice_t b) {
  nvmlGpuTopologyLevel_t level;
  MUST(nvmlDeviceGetTopologyCommonAncestor, a, b, &level);
  switch (level) {
    case NVML_TOPOLOGY_INTERNAL: {
      int same_board = 0;
      MUST(nvmlDeviceOnSameBoard, a, b, &same_board);
      return same_board ? "BOARD" : "?";
    }
    case NVML_TOPOLOGY_SINGLE:
      return "PIX";
    case NVML_TOPOLOGY_MULTIPLE:
      return "PXB";
    case NVML_TOPOLOGY_HOSTBRIDGE:
      return "PHB";
    case NVML_TOPOLOGY_NODE:
      return "NODE";
    case NVML_TOPOLOGY_SYSTEM:
      return "SYS";
  }
  return "?";
}

int main(void) {
  char version[NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE];
  nvmlDevice_t gpus[MAX_GPUS];
  unsigned int count;
  int cuda;

  load();
  MUST(nvmlInit_v2);
  MUST(nvmlSystemGetDriverVersion, version, sizeof version);
  MUST(nvmlSystemGetCudaDriverVersion_v2, &cuda);
  printf("driver %s cuda %d.%d\n", version, cuda / 1000, cuda % 1000 / 10);
  MUST(nvmlDeviceGetCount_v2, &count);
  if (count > MAX_GPUS) die("nvmlDeviceGetCount_v2", "more GPUs than this program expects");
  for (unsigned int i = 0; i < count; ++i) {
    MUST(nvmlDeviceGetHandleByIndex_v2, i, &gpus[i]);
    print_gpu(i, gpus[i]);
    print_use(i, gpus[i]);
  }
  for (unsigned int i = 0; i < count; ++i)
    for (unsigned int j = 0; j < count; ++j)
      if (i != j) printf("pair %u %u %s %d\n", i, j, level_name(gpus[i], gpus[j]), nvlinks(gpus[i], gpus[j]));
  MUST(nvmlShutdown);
  return 0;
}

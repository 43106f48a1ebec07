/* The library of NVML that goes before the driver's: of a GPU that is limited it shows the container's share
 * of the memory, and of processes only those of the container that have a slot, by the pids that they know
 * themselves by. Everything else is the driver's own. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/nvml_abi.h"
#include "guard/glibc.h"
#include "guard/pages.h"

/* Whoever sets a container up points this name at the driver's file. */
#define DRIVER_LIBRARY "libdrover-driver-ml.so.1"
#define EXPORT __attribute__((visibility("default")))

enum { MOST_PROCESSES = 4096 };

typedef struct {
  unsigned int version;
  unsigned int mode;
  unsigned int numProcArrayEntries;
  struct {
    unsigned int pid;
    unsigned long long usedGpuMemory;
    unsigned int gpuInstanceId;
    unsigned int computeInstanceId;
    unsigned long long usedGpuCcProtectedMemory;
  }* procArray;
} nvmlProcessDetailList_t;
typedef struct {
  unsigned int version;
  unsigned int processSamplesCount;
  unsigned long long lastSeenTimeStamp;
  struct {
    unsigned long long timeStamp;
    unsigned int pid;
    unsigned int utilization[6];
  }* procUtilArray;
} nvmlProcessesUtilizationInfo_t;
typedef struct nvmlAccountingStats_st nvmlAccountingStats_t;

/* A list of structures that begin with a pid. */
#define LISTS(X)                                                      \
  X(nvmlDeviceGetComputeRunningProcesses, nvmlProcessInfo_v1_t)       \
  X(nvmlDeviceGetComputeRunningProcesses_v2, nvmlProcessInfo_v2_t)    \
  X(nvmlDeviceGetComputeRunningProcesses_v3, nvmlProcessInfo_t)       \
  X(nvmlDeviceGetGraphicsRunningProcesses, nvmlProcessInfo_v1_t)      \
  X(nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlProcessInfo_v2_t)   \
  X(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlProcessInfo_t)      \
  X(nvmlDeviceGetMPSComputeRunningProcesses, nvmlProcessInfo_v1_t)    \
  X(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvmlProcessInfo_v2_t) \
  X(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlProcessInfo_t)    \
  X(nvmlDeviceGetAccountingPids, unsigned int)

#define ITS_LIST(name, type) nvmlReturn_t (*name)(nvmlDevice_t, unsigned int*, type*);
static struct {
  LISTS(ITS_LIST)
  nvmlReturn_t (*nvmlDeviceGetUUID)(nvmlDevice_t, char*, unsigned int);
  nvmlReturn_t (*nvmlDeviceGetMemoryInfo)(nvmlDevice_t, nvmlMemory_t*);
  nvmlReturn_t (*nvmlDeviceGetMemoryInfo_v2)(nvmlDevice_t, nvmlMemory_v2_t*);
  nvmlReturn_t (*nvmlDeviceGetProcessUtilization)(nvmlDevice_t, nvmlProcessUtilizationSample_t*,
                                                  unsigned int*, unsigned long long);
  nvmlReturn_t (*nvmlDeviceGetProcessesUtilizationInfo)(nvmlDevice_t, nvmlProcessesUtilizationInfo_t*);
  nvmlReturn_t (*nvmlDeviceGetRunningProcessDetailList)(nvmlDevice_t, nvmlProcessDetailList_t*);
  nvmlReturn_t (*nvmlDeviceGetAccountingStats)(nvmlDevice_t, unsigned int, nvmlAccountingStats_t*);
} driver;

static nvmlReturn_t lacking(void) {
  return NVML_ERROR_FUNCTION_NOT_FOUND;
}

__attribute__((constructor)) static void resolve_driver(void) {
  void* library = dlopen(DRIVER_LIBRARY, RTLD_LAZY | RTLD_NOLOAD);
#define RESOLVE(name, ...)                                              \
  {                                                                     \
    void* const found = library != NULL ? dlsym(library, #name) : NULL; \
    *(void**)&driver.name = found != NULL ? found : (void*)lacking;     \
  }
  LISTS(RESOLVE)
  RESOLVE(nvmlDeviceGetUUID, )
  RESOLVE(nvmlDeviceGetMemoryInfo, )
  RESOLVE(nvmlDeviceGetMemoryInfo_v2, )
  RESOLVE(nvmlDeviceGetProcessUtilization, )
  RESOLVE(nvmlDeviceGetProcessesUtilizationInfo, )
  RESOLVE(nvmlDeviceGetRunningProcessDetailList, )
  RESOLVE(nvmlDeviceGetAccountingStats, )
}

/* By UUID, which is the same whichever GPUs a program sees and in which order. */
static int limited(nvmlDevice_t device) {
  char text[NVML_DEVICE_UUID_BUFFER_SIZE];
  unsigned char uuid[16];
  if (guard_open() == GUARD_UNLIMITED) return -1;
  if (driver.nvmlDeviceGetUUID(device, text, sizeof text) != NVML_SUCCESS) return -1;
  return guard_parse_uuid(text, uuid) ? guard_entry(uuid) : -1;
}

/* ---- Memory ---- */

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* memory) {
  const nvmlReturn_t result = driver.nvmlDeviceGetMemoryInfo(device, memory);
  const int entry = result == NVML_SUCCESS ? limited(device) : -1;
  if (entry < 0) return result;
  memory->total = guard_limit_bytes(entry);
  memory->used = guard_used_bytes(entry);
  memory->free = memory->total > memory->used ? memory->total - memory->used : 0;
  return result;
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t* memory) {
  const nvmlReturn_t result = driver.nvmlDeviceGetMemoryInfo_v2(device, memory);
  const int entry = result == NVML_SUCCESS ? limited(device) : -1;
  if (entry < 0) return result;
  memory->total = guard_limit_bytes(entry);
  memory->reserved = 0;
  memory->used = guard_used_bytes(entry);
  memory->free = memory->total > memory->used ? memory->total - memory->used : 0;
  return result;
}

/* ---- Processes ---- */

static unsigned int* pid_in(char* item, size_t offset) {
  return (unsigned int*)(void*)(item + offset);
}

/* Keeps the container's own of `count` items; returns how many these are. */
static unsigned int keep_own(void* items, unsigned int count, size_t size, size_t offset) {
  char* const bytes = items;
  unsigned int kept = 0;
  for (unsigned int i = 0; i < count; ++i) {
    const uint32_t own = guard_find_pids(*pid_in(bytes + i * size, offset)).own;
    if (own == 0) continue;
    if (kept != i) memcpy(bytes + kept * size, bytes + i * size, size);
    *pid_in(bytes + kept++ * size, offset) = own;
  }
  return kept;
}

/* As NVML answers lists: *room is what there is in `out`, and then the number written, or needed. */
static nvmlReturn_t answer(const void* items, unsigned int count, size_t size, unsigned int* room,
                           void* out) {
  const unsigned int had = *room;
  *room = count;
  if (count == 0) return NVML_SUCCESS;
  if (had < count) return NVML_ERROR_INSUFFICIENT_SIZE;
  if (out == NULL) return NVML_ERROR_INVALID_ARGUMENT;
  memcpy(out, items, count * size);
  return NVML_SUCCESS;
}

#define LIST(name, type)                                                                          \
  EXPORT nvmlReturn_t name(nvmlDevice_t device, unsigned int* room, type* out) {                  \
    if (room == NULL || limited(device) < 0) return driver.name(device, room, out);               \
    unsigned int count = MOST_PROCESSES;                                                          \
    type* const items = malloc(count * sizeof *items);                                            \
    if (items == NULL) return NVML_ERROR_MEMORY;                                                  \
    nvmlReturn_t result = driver.name(device, &count, items);                                     \
    if (result == NVML_SUCCESS)                                                                   \
      result = answer(items, keep_own(items, count, sizeof *items, 0), sizeof *items, room, out); \
    free(items);                                                                                  \
    return result;                                                                                \
  }
LISTS(LIST)

EXPORT nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device, nvmlProcessUtilizationSample_t* out,
                                                    unsigned int* room, unsigned long long since) {
  if (room == NULL || limited(device) < 0)
    return driver.nvmlDeviceGetProcessUtilization(device, out, room, since);
  unsigned int count = MOST_PROCESSES;
  nvmlProcessUtilizationSample_t* const items = malloc(count * sizeof *items);
  if (items == NULL) return NVML_ERROR_MEMORY;
  nvmlReturn_t result = driver.nvmlDeviceGetProcessUtilization(device, items, &count, since);
  if (result == NVML_SUCCESS) {
    count = keep_own(items, count, sizeof *items, 0);
    result = count == 0 ? NVML_ERROR_NOT_FOUND : answer(items, count, sizeof *items, room, out);
  }
  free(items);
  return result;
}

EXPORT nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device,
                                                          nvmlProcessesUtilizationInfo_t* list) {
  const nvmlReturn_t result = driver.nvmlDeviceGetProcessesUtilizationInfo(device, list);
  if (result != NVML_SUCCESS || list->procUtilArray == NULL || limited(device) < 0) return result;
  list->processSamplesCount = keep_own(list->procUtilArray, list->processSamplesCount,
                                       sizeof *list->procUtilArray, sizeof list->procUtilArray->timeStamp);
  return result;
}

EXPORT nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device,
                                                          nvmlProcessDetailList_t* list) {
  const nvmlReturn_t result = driver.nvmlDeviceGetRunningProcessDetailList(device, list);
  if (result != NVML_SUCCESS || list->procArray == NULL || limited(device) < 0) return result;
  list->numProcArrayEntries =
      keep_own(list->procArray, list->numProcArrayEntries, sizeof *list->procArray, 0);
  return result;
}

EXPORT nvmlReturn_t nvmlDeviceGetAccountingStats(nvmlDevice_t device, unsigned int pid,
                                                 nvmlAccountingStats_t* stats) {
  if (limited(device) < 0) return driver.nvmlDeviceGetAccountingStats(device, pid, stats);
  const struct guard_pids pids = guard_pids_of(pid);
  if (pids.own == 0) return NVML_ERROR_NOT_FOUND;
  const nvmlReturn_t result =
      pids.host == 0 ? NVML_ERROR_NOT_FOUND : driver.nvmlDeviceGetAccountingStats(device, pids.host, stats);
  return result == NVML_ERROR_NOT_FOUND ? driver.nvmlDeviceGetAccountingStats(device, pids.own, stats)
                                        : result;
}

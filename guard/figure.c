#define _GNU_SOURCE
#include "guard/figure.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "gpu/nvml_abi.h"
#include "guard/driver.h"
#include "guard/glibc.h"
#include "guard/pages.h"

enum { MOST_PROCESSES = 1024 };

static struct {
  bool tried;
  bool works;
  nvmlReturn_t (*processes)(nvmlDevice_t, unsigned int*, nvmlProcessInfo_t*);
  nvmlReturn_t (*memory)(nvmlDevice_t, nvmlMemory_t*);
  nvmlDevice_t gpus[GUARD_GPUS];
} nvml;

/* Ours first: whoever asks the loader for NVML by its name later is to get the first one that has it. */
static void load_our_nvml(void) {
  Dl_info info;
  char path[DRIVER_PATH_SIZE];
  if (dladdr((void*)load_our_nvml, &info) == 0 || info.dli_fname == NULL) return;
  const char* slash = strrchr(info.dli_fname, '/');
  if (slash == NULL) return;
  const int length =
      snprintf(path, sizeof path, "%.*s/libnvidia-ml.so.1", (int)(slash - info.dli_fname), info.dli_fname);
  if (length > 0 && length < (int)sizeof path) dlopen(path, RTLD_LAZY | RTLD_LOCAL);
}

static bool load(void) {
  char path[DRIVER_PATH_SIZE];
  if (!driver_neighbour("libdrover-driver-ml.so.1", path)) return false;
  load_our_nvml();
  void* library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
  if (library == NULL) return false;
  nvmlReturn_t (*init)(void);
  *(void**)&init = dlsym(library, "nvmlInit_v2");
  *(void**)&nvml.processes = dlsym(library, "nvmlDeviceGetComputeRunningProcesses_v3");
  if (nvml.processes == NULL)
    *(void**)&nvml.processes = dlsym(library, "nvmlDeviceGetComputeRunningProcesses_v2");
  *(void**)&nvml.memory = dlsym(library, "nvmlDeviceGetMemoryInfo");
  nvmlReturn_t (*find)(const char*, nvmlDevice_t*);
  *(void**)&find = dlsym(library, "nvmlDeviceGetHandleByUUID");
  if (init == NULL || nvml.processes == NULL || nvml.memory == NULL || find == NULL) return false;
  if (init() != NVML_SUCCESS) return false;
  for (int entry = 0; entry < GUARD_GPUS && *guard_uuid(entry) != '\0'; ++entry)
    if (find(guard_uuid(entry), &nvml.gpus[entry]) != NVML_SUCCESS) nvml.gpus[entry] = NULL;
  return true;
}

static bool knows(int entry) {
  if (!nvml.tried) {
    nvml.tried = true;
    nvml.works = load();
  }
  return nvml.works && nvml.gpus[entry] != NULL;
}

/* What the driver lists of a process; false when it is not listed. */
static bool add_listed(const nvmlProcessInfo_t* processes, unsigned int count, uint32_t pid,
                       uint64_t* bytes) {
  bool listed = false;
  for (unsigned int i = 0; i < count && i < MOST_PROCESSES; ++i) {
    if (processes[i].pid != pid || processes[i].usedGpuMemory == (unsigned long long)NVML_VALUE_NOT_AVAILABLE)
      continue;
    *bytes += processes[i].usedGpuMemory;
    listed = true;
  }
  return listed;
}

bool figure_of_process(int entry, uint64_t* bytes) {
  static nvmlProcessInfo_t processes[MOST_PROCESSES];
  unsigned int count = MOST_PROCESSES;
  *bytes = 0;
  if (!knows(entry) || nvml.processes(nvml.gpus[entry], &count, processes) != NVML_SUCCESS) return false;
  const struct guard_pids pids = guard_own_pids();
  static bool is_known; /* NVML lists this process when it has something */
  is_known |= (pids.host != 0 && add_listed(processes, count, pids.host, bytes)) ||
              add_listed(processes, count, pids.own, bytes);
  return is_known;
}

bool figure_of_gpu(int entry, uint64_t* bytes) {
  nvmlMemory_t memory;
  *bytes = 0;
  if (!knows(entry) || nvml.memory(nvml.gpus[entry], &memory) != NVML_SUCCESS) return false;
  *bytes = memory.used;
  return true;
}

// Libraries that are wrong in one way each, for nvml_test.cc and discovery_test.cc: the build defines which.
//   FAKE_GOOD, FAKE_OLD_DRIVER, FAKE_NO_COUNT, FAKE_INIT_FAILS, FAKE_UNSUFFIXED: no GPUs
//   FAKE_HANGS: nvmlInit never returns (tests/test_driver_upgrade.py builds this one)
//   FAKE_BROKEN: GPU 0 fails one query, GPU 1 is lost, GPU 2 has no UUID, GPU 3 tells all it is asked for

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gpu/nvml_types.h"

#ifdef FAKE_UNSUFFIXED
#define REVISION(name) name
#else
#define REVISION(name) name##_v2
#endif

static int open_sessions = 0;

nvmlReturn_t REVISION(nvmlInit)(void) {
#ifdef FAKE_INIT_FAILS
  return NVML_ERROR_DRIVER_NOT_LOADED;
#elif defined(FAKE_HANGS)
  for (;;) pause();
#else
  ++open_sessions;
  return NVML_SUCCESS;
#endif
}

nvmlReturn_t nvmlShutdown(void) {
  --open_sessions;
  return NVML_SUCCESS;
}

int fake_open_sessions(void) {
  return open_sessions;
}

const char* nvmlErrorString(nvmlReturn_t result) {
  switch (result) {
    case NVML_ERROR_DRIVER_NOT_LOADED:
      return "Driver Not Loaded";
    case NVML_ERROR_GPU_IS_LOST:
      return "GPU is lost";
    default:
      return "Unknown Error";
  }
}

nvmlReturn_t nvmlSystemGetDriverVersion(char* version, unsigned int length) {
#ifdef FAKE_OLD_DRIVER
  snprintf(version, length, "331.62");
#else
  snprintf(version, length, "340.29");
#endif
  return NVML_SUCCESS;
}

#ifdef FAKE_BROKEN
#define GPUS 4
#else
#define GPUS 0
#endif

#ifndef FAKE_NO_COUNT
nvmlReturn_t REVISION(nvmlDeviceGetCount)(unsigned int* count) {
  *count = GPUS;
  return NVML_SUCCESS;
}
#endif

static char places[GPUS + 1];

nvmlReturn_t REVISION(nvmlDeviceGetHandleByIndex)(unsigned int index, nvmlDevice_t* device) {
  if (index >= GPUS) return NVML_ERROR_INVALID_ARGUMENT;
  if (index == 1) return NVML_ERROR_GPU_IS_LOST;
  *device = (nvmlDevice_t)&places[index];
  return NVML_SUCCESS;
}

#ifdef FAKE_BROKEN
static int index_of(nvmlDevice_t device) {
  return (int)((char*)device - places);
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char* uuid, unsigned int length) {
  if (index_of(device) == 2) return NVML_ERROR_UNKNOWN;
  snprintf(uuid, length, "GPU-%d", index_of(device));
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t device, char* serial, unsigned int length) {
  if (index_of(device) == 0) return NVML_ERROR_UNKNOWN;
  if (index_of(device) == 2) return NVML_ERROR_NOT_SUPPORTED;
  snprintf(serial, length, "0123");
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int* minor) {
  if (index_of(device) == 3) return NVML_ERROR_NOT_SUPPORTED;
  *minor = (unsigned int)index_of(device);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_v2_t* pci) {
  memset(pci, 0, sizeof *pci);
  pci->bus = (unsigned int)index_of(device) + 1;
  return NVML_SUCCESS;
}
#endif

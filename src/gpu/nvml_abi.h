// NVIDIA's management library (NVML) as Drover sees it: everything that crosses the boundary to
// libnvidia-ml.so.1.
//
// The product loads the library at run time, so it uses the prototypes only as types
// (`decltype(&nvmlInit_v2)`), and never links. The simulator defines the same functions. NVML is thread-safe;
// every call returns an nvmlReturn_t.
#pragma once

#include "gpu/nvml_functions.h"  // IWYU pragma: export
#include "gpu/nvml_mig.h"        // IWYU pragma: export
#include "gpu/nvml_nvlink.h"     // IWYU pragma: export
#include "gpu/nvml_types.h"      // IWYU pragma: export

// The layout is the contract with a library that we do not build.
static_assert(sizeof(nvmlPciInfo_t) == 68, "nvmlPciInfo_t");
static_assert(offsetof(nvmlPciInfo_t, busId) == 36, "nvmlPciInfo_t.busId");
static_assert(sizeof(nvmlPciInfo_v2_t) == 52, "nvmlPciInfo_v2_t");
static_assert(sizeof(nvmlPciInfoExt_v1_t) == 64, "nvmlPciInfoExt_v1_t");
static_assert(sizeof(nvmlBridgeChipHierarchy_t) == 1028, "nvmlBridgeChipHierarchy_t");
static_assert(sizeof(nvmlExcludedDeviceInfo_t) == 148, "nvmlExcludedDeviceInfo_t");
static_assert(sizeof(nvmlMemory_t) == 24, "nvmlMemory_t");
static_assert(sizeof(nvmlMemory_v2_t) == 40, "nvmlMemory_v2_t");
static_assert(sizeof(nvmlSetMemoryLimits_v1_t) == 24, "nvmlSetMemoryLimits_v1_t");
static_assert(sizeof(nvmlGetMemoryLimits_v1_t) == 32, "nvmlGetMemoryLimits_v1_t");
static_assert(sizeof(nvmlBAR1Memory_t) == 24, "nvmlBAR1Memory_t");
static_assert(sizeof(nvmlUtilization_t) == 8, "nvmlUtilization_t");
static_assert(sizeof(nvmlEccErrorCounts_t) == 32, "nvmlEccErrorCounts_t");
static_assert(sizeof(nvmlRowRemapperHistogramValues_t) == 20, "nvmlRowRemapperHistogramValues_t");
static_assert(sizeof(nvmlGpuFabricInfo_t) == 28, "nvmlGpuFabricInfo_t");
static_assert(sizeof(nvmlGpuFabricInfo_v2_t) == 36, "nvmlGpuFabricInfo_v2_t");
static_assert(sizeof(nvmlGpuFabricInfo_v3_t) == 40, "nvmlGpuFabricInfo_v3_t");
static_assert(sizeof(nvmlTemperature_v1_t) == 12, "nvmlTemperature_v1_t");
static_assert(sizeof(nvmlProcessInfo_v1_t) == 16, "nvmlProcessInfo_v1_t");
static_assert(sizeof(nvmlProcessInfo_v2_t) == 24, "nvmlProcessInfo_v2_t");
static_assert(sizeof(nvmlProcessUtilizationSample_t) == 32, "nvmlProcessUtilizationSample_t");
static_assert(sizeof(nvmlEventData_t) == 32, "nvmlEventData_t");
static_assert(offsetof(nvmlEventData_t, gpuInstanceId) == 24, "nvmlEventData_t.gpuInstanceId");
static_assert(sizeof(nvmlEventData_v1_t) == 24, "nvmlEventData_v1_t");
static_assert(sizeof(nvmlValue_t) == 8, "nvmlValue_t");
static_assert(sizeof(nvmlSample_t) == 16, "nvmlSample_t");
static_assert(sizeof(nvmlFieldValue_t) == 40, "nvmlFieldValue_t");
static_assert(sizeof(nvmlDeviceAttributes_t) == 40, "nvmlDeviceAttributes_t");
static_assert(sizeof(nvmlGpuInstanceProfileInfo_t) == 48, "nvmlGpuInstanceProfileInfo_t");
static_assert(sizeof(nvmlGpuInstanceProfileInfo_v2_t) == 152, "nvmlGpuInstanceProfileInfo_v2_t");
static_assert(sizeof(nvmlGpuInstancePlacement_t) == 8, "nvmlGpuInstancePlacement_t");
static_assert(sizeof(nvmlGpuInstanceInfo_t) == 24, "nvmlGpuInstanceInfo_t");
static_assert(offsetof(nvmlGpuInstanceInfo_t, placement) == 16, "nvmlGpuInstanceInfo_t.placement");
static_assert(sizeof(nvmlComputeInstanceProfileInfo_t) == 36, "nvmlComputeInstanceProfileInfo_t");
static_assert(sizeof(nvmlComputeInstanceInfo_t) == 32, "nvmlComputeInstanceInfo_t");

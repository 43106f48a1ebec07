// Multi-Instance GPU (MIG) data and the identifiers of nvmlDeviceGetFieldValues: see nvml_types.h.
#pragma once

#include "gpu/nvml_types.h"

// NOLINTBEGIN(modernize-*,readability-identifier-naming)
#ifdef __cplusplus
extern "C" {
#endif

enum { NVML_DEVICE_MIG_DISABLE = 0, NVML_DEVICE_MIG_ENABLE = 1 };

// Profiles are numbered by compute slices, not by the product's profile names.
enum {
  NVML_GPU_INSTANCE_PROFILE_1_SLICE = 0,
  NVML_GPU_INSTANCE_PROFILE_2_SLICE = 1,
  NVML_GPU_INSTANCE_PROFILE_3_SLICE = 2,
  NVML_GPU_INSTANCE_PROFILE_4_SLICE = 3,
  NVML_GPU_INSTANCE_PROFILE_7_SLICE = 4,
  NVML_GPU_INSTANCE_PROFILE_8_SLICE = 5,
  NVML_GPU_INSTANCE_PROFILE_6_SLICE = 6,
  NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV1 = 7,  // with the media engines
  NVML_GPU_INSTANCE_PROFILE_2_SLICE_REV1 = 8,
  NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV2 = 9,  // with twice the memory
  NVML_GPU_INSTANCE_PROFILE_COUNT = 10,        // of the drivers that brought these; newer ones have more
  NVML_GPU_INSTANCE_PROFILE_COUNT_NEWEST = 17
};

enum {
  NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE = 0,
  NVML_COMPUTE_INSTANCE_PROFILE_2_SLICE = 1,
  NVML_COMPUTE_INSTANCE_PROFILE_3_SLICE = 2,
  NVML_COMPUTE_INSTANCE_PROFILE_4_SLICE = 3,
  NVML_COMPUTE_INSTANCE_PROFILE_7_SLICE = 4,
  NVML_COMPUTE_INSTANCE_PROFILE_8_SLICE = 5,
  NVML_COMPUTE_INSTANCE_PROFILE_6_SLICE = 6,
  NVML_COMPUTE_INSTANCE_PROFILE_COUNT = 8
};

enum { NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED = 0 };

// What a GPU or MIG instance has of each engine.
typedef struct nvmlDeviceAttributes_st {
  unsigned int multiprocessorCount;
  unsigned int sharedCopyEngineCount;
  unsigned int sharedDecoderCount;
  unsigned int sharedEncoderCount;
  unsigned int sharedJpegCount;
  unsigned int sharedOfaCount;
  unsigned int gpuInstanceSliceCount;
  unsigned int computeInstanceSliceCount;
  unsigned long long memorySizeMB;
} nvmlDeviceAttributes_t;

typedef struct nvmlGpuInstanceProfileInfo_st {
  unsigned int id;
  unsigned int isP2pSupported;
  unsigned int sliceCount;
  unsigned int instanceCount;  // how many of this profile fit on an empty GPU
  unsigned int multiprocessorCount;
  unsigned int copyEngineCount;
  unsigned int decoderCount;
  unsigned int encoderCount;
  unsigned int jpegCount;
  unsigned int ofaCount;
  unsigned long long memorySizeMB;
} nvmlGpuInstanceProfileInfo_t;

typedef struct nvmlGpuInstanceProfileInfo_v2_st {
  unsigned int version;
  unsigned int id;
  unsigned int isP2pSupported;
  unsigned int sliceCount;
  unsigned int instanceCount;
  unsigned int multiprocessorCount;
  unsigned int copyEngineCount;
  unsigned int decoderCount;
  unsigned int encoderCount;
  unsigned int jpegCount;
  unsigned int ofaCount;
  unsigned long long memorySizeMB;
  char name[NVML_DEVICE_NAME_V2_BUFFER_SIZE];
} nvmlGpuInstanceProfileInfo_v2_t;

// Where a GPU instance is, in slices of memory.
typedef struct nvmlGpuInstancePlacement_st {
  unsigned int start;
  unsigned int size;
} nvmlGpuInstancePlacement_t;

typedef struct nvmlGpuInstanceInfo_st {
  nvmlDevice_t device;  // the whole GPU
  unsigned int id;
  unsigned int profileId;
  nvmlGpuInstancePlacement_t placement;
} nvmlGpuInstanceInfo_t;

typedef struct nvmlComputeInstanceProfileInfo_st {
  unsigned int id;
  unsigned int sliceCount;
  unsigned int instanceCount;
  unsigned int multiprocessorCount;
  unsigned int sharedCopyEngineCount;
  unsigned int sharedDecoderCount;
  unsigned int sharedEncoderCount;
  unsigned int sharedJpegCount;
  unsigned int sharedOfaCount;
} nvmlComputeInstanceProfileInfo_t;

typedef struct nvmlComputeInstanceProfileInfo_v2_st {
  unsigned int version;
  unsigned int id;
  unsigned int sliceCount;
  unsigned int instanceCount;
  unsigned int multiprocessorCount;
  unsigned int sharedCopyEngineCount;
  unsigned int sharedDecoderCount;
  unsigned int sharedEncoderCount;
  unsigned int sharedJpegCount;
  unsigned int sharedOfaCount;
  char name[NVML_DEVICE_NAME_V2_BUFFER_SIZE];
} nvmlComputeInstanceProfileInfo_v2_t;

typedef struct nvmlComputeInstanceProfileInfo_v3_st {
  unsigned int version;
  unsigned int id;
  unsigned int sliceCount;
  unsigned int instanceCount;
  unsigned int multiprocessorCount;
  unsigned int sharedCopyEngineCount;
  unsigned int sharedDecoderCount;
  unsigned int sharedEncoderCount;
  unsigned int sharedJpegCount;
  unsigned int sharedOfaCount;
  char name[NVML_DEVICE_NAME_V2_BUFFER_SIZE];
  unsigned int capabilities;
} nvmlComputeInstanceProfileInfo_v3_t;

// Where a compute instance is, in the GPU instance's slices of compute.
typedef struct nvmlComputeInstancePlacement_st {
  unsigned int start;
  unsigned int size;
} nvmlComputeInstancePlacement_t;

typedef struct nvmlComputeInstanceInfo_st {
  nvmlDevice_t device;  // the whole GPU
  nvmlGpuInstance_t gpuInstance;
  unsigned int id;
  unsigned int profileId;
  nvmlComputeInstancePlacement_t placement;
} nvmlComputeInstanceInfo_t;

// Fields that nvmlDeviceGetFieldValues is asked for.
enum {
  NVML_FI_DEV_ECC_CURRENT = 1,
  NVML_FI_DEV_ECC_PENDING = 2,
  NVML_FI_DEV_ECC_SBE_VOL_TOTAL = 3,
  NVML_FI_DEV_ECC_DBE_VOL_TOTAL = 4,
  NVML_FI_DEV_ECC_SBE_AGG_TOTAL = 5,
  NVML_FI_DEV_ECC_DBE_AGG_TOTAL = 6,
  NVML_FI_DEV_ECC_SBE_VOL_DEV = 11,
  NVML_FI_DEV_ECC_DBE_VOL_DEV = 12,
  NVML_FI_DEV_ECC_SBE_AGG_DEV = 22,
  NVML_FI_DEV_ECC_DBE_AGG_DEV = 23,
  NVML_FI_DEV_RETIRED_SBE = 29,
  NVML_FI_DEV_RETIRED_DBE = 30,
  NVML_FI_DEV_RETIRED_PENDING = 31,
  NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L0 = 32,
  NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL = 59,
  NVML_FI_DEV_MEMORY_TEMP = 82,
  NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION = 83,
  NVML_FI_DEV_NVLINK_SPEED_MBPS_L0 = 84,
  NVML_FI_DEV_NVLINK_SPEED_MBPS_L5 = 89,
  NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON = 90,
  NVML_FI_DEV_NVLINK_LINK_COUNT = 91,
  NVML_FI_DEV_RETIRED_PENDING_SBE = 92,
  NVML_FI_DEV_RETIRED_PENDING_DBE = 93,
  NVML_FI_DEV_PCIE_REPLAY_COUNTER = 94,
  NVML_FI_DEV_PCIE_REPLAY_ROLLOVER_COUNTER = 95,
  NVML_FI_DEV_NVLINK_SPEED_MBPS_L6 = 132,
  NVML_FI_DEV_NVLINK_SPEED_MBPS_L11 = 137,
  // Of the link in scopeId, or of all links together with NVML_FI_ALL_LINKS; KiB of payload.
  NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX = 138,
  NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX = 139,
  NVML_FI_DEV_REMAPPED_COR = 142,
  NVML_FI_DEV_REMAPPED_UNC = 143,
  NVML_FI_DEV_REMAPPED_PENDING = 144,
  NVML_FI_DEV_REMAPPED_FAILURE = 145,
  NVML_FI_DEV_NVLINK_REMOTE_NVLINK_ID = 146,
  NVML_FI_DEV_NVSWITCH_CONNECTED_LINK_COUNT = 147,
  NVML_FI_DEV_NVLINK_GET_SPEED = 164,
  NVML_FI_DEV_NVLINK_GET_STATE = 165,
  NVML_FI_DEV_NVLINK_GET_VERSION = 166,
  NVML_FI_DEV_C2C_LINK_COUNT = 170,
  NVML_FI_DEV_POWER_AVERAGE = 185,
  NVML_FI_DEV_POWER_INSTANT = 186,
  NVML_FI_DEV_POWER_MIN_LIMIT = 187,
  NVML_FI_DEV_POWER_MAX_LIMIT = 188,
  NVML_FI_DEV_POWER_DEFAULT_LIMIT = 189,
  NVML_FI_DEV_POWER_CURRENT_LIMIT = 190,
  NVML_FI_DEV_POWER_REQUESTED_LIMIT = 192,
  NVML_FI_DEV_GET_GPU_RECOVERY_ACTION = 230  // drivers since 565
};
enum {  // as scopeId: whose power
  NVML_POWER_SCOPE_GPU = 0,
  NVML_POWER_SCOPE_MODULE = 1,
  NVML_POWER_SCOPE_MEMORY = 2
};
#define NVML_FI_ALL_LINKS 0xFFFFFFFFU  // as scopeId: all NVLinks of the GPU together

#ifdef __cplusplus
}
#endif
// NOLINTEND(modernize-*,readability-identifier-naming)

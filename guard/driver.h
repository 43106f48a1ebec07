/* The driver's own library behind ours, and which of its functions ours stand before. */
#pragma once

#include "gpu/cuda_abi.h"

#define EXPORT __attribute__((visibility("default")))

/* Only their addresses are passed on. */
typedef struct CUgreenCtx_st* CUgreenCtx;
typedef struct CUdevResourceDesc_st* CUdevResourceDesc;
typedef struct CUextMemory_st* CUexternalMemory;
typedef struct CUmemPoolPtrExportData_st CUmemPoolPtrExportData;
typedef struct CUarrayMapInfo_st CUarrayMapInfo;

/* As wide as before CUDA 3.2. */
typedef unsigned int CUdeviceptr_v1;
typedef struct {
  unsigned int Width;
  unsigned int Height;
  CUarray_format Format;
  unsigned int NumChannels;
} CUDA_ARRAY_DESCRIPTOR_v1;
typedef struct {
  unsigned int Width;
  unsigned int Height;
  unsigned int Depth;
  CUarray_format Format;
  unsigned int NumChannels;
  unsigned int Flags;
} CUDA_ARRAY3D_DESCRIPTOR_v1;

/* Up to what ours looks at. */
typedef struct {
  int type;
  union {
    int fd;
    struct {
      void* handle;
      const void* name;
    } win32;
    const void* nvSciBufObject;
  } handle;
  unsigned long long size;
  unsigned int flags;
  unsigned int reserved[16];
} CUDA_EXTERNAL_MEMORY_HANDLE_DESC;
static_assert(offsetof(CUDA_EXTERNAL_MEMORY_HANDLE_DESC, size) == 24, "size");

typedef struct {
  CUfunction function;
  unsigned int sizes[7];
  CUstream hStream;
  void** kernelParams;
} CUDA_LAUNCH_PARAMS;
static_assert(sizeof(CUDA_LAUNCH_PARAMS) == 56, "launch parameters");

#define KERNEL_PARAMETERS(...)                                                                     \
  (CUfunction, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, \
   unsigned int, CUstream, __VA_ARGS__)

/* Every function that ours stands before: its symbol and parameters; and as cuGetProcAddress() is asked for
 * it: a name, the version of CUDA that it came with, and whether it is of the per-thread default stream (1),
 * of the legacy one (2), or of none (0). */
#define COVERED(X)                                                                                           \
  X(cuGetProcAddress, (const char*, void**, int, cuuint64_t), "cuGetProcAddress", 11030, 0)                  \
  X(cuGetProcAddress_v2, (const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*),            \
    "cuGetProcAddress", 12000, 2)                                                                            \
  X(cuGetProcAddress_v2_ptsz, (const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*),       \
    "cuGetProcAddress", 12000, 1)                                                                            \
  X(cuMemGetInfo, (unsigned int*, unsigned int*), "cuMemGetInfo", 2000, 0)                                   \
  X(cuMemGetInfo_v2, (size_t*, size_t*), "cuMemGetInfo", 3020, 0)                                            \
  X(cuDeviceTotalMem, (unsigned int*, CUdevice), "cuDeviceTotalMem", 2000, 0)                                \
  X(cuDeviceTotalMem_v2, (size_t*, CUdevice), "cuDeviceTotalMem", 3020, 0)                                   \
  X(cuMemAlloc, (CUdeviceptr_v1*, unsigned int), "cuMemAlloc", 2000, 0)                                      \
  X(cuMemAlloc_v2, (CUdeviceptr*, size_t), "cuMemAlloc", 3020, 0)                                            \
  X(cuMemAllocPitch, (CUdeviceptr_v1*, unsigned int*, unsigned int, unsigned int, unsigned int),             \
    "cuMemAllocPitch", 2000, 0)                                                                              \
  X(cuMemAllocPitch_v2, (CUdeviceptr*, size_t*, size_t, size_t, unsigned int), "cuMemAllocPitch", 3020, 0)   \
  X(cuMemAllocManaged, (CUdeviceptr*, size_t, unsigned int), "cuMemAllocManaged", 6000, 0)                   \
  X(cuMemFree, (CUdeviceptr_v1), "cuMemFree", 2000, 0)                                                       \
  X(cuMemFree_v2, (CUdeviceptr), "cuMemFree", 3020, 0)                                                       \
  X(cuMemCreate, (CUmemGenericAllocationHandle*, size_t, const CUmemAllocationProp*, unsigned long long),    \
    "cuMemCreate", 10020, 0)                                                                                 \
  X(cuMemRelease, (CUmemGenericAllocationHandle), "cuMemRelease", 10020, 0)                                  \
  X(cuMemRetainAllocationHandle, (CUmemGenericAllocationHandle*, void*), "cuMemRetainAllocationHandle",      \
    11000, 0)                                                                                                \
  X(cuMemMap, (CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long), "cuMemMap",   \
    10020, 0)                                                                                                \
  X(cuMemUnmap, (CUdeviceptr, size_t), "cuMemUnmap", 10020, 0)                                               \
  X(cuMemImportFromShareableHandle, (CUmemGenericAllocationHandle*, void*, CUmemAllocationHandleType),       \
    "cuMemImportFromShareableHandle", 10020, 0)                                                              \
  X(cuMemMapArrayAsync, (CUarrayMapInfo*, unsigned int, CUstream), "cuMemMapArrayAsync", 11010, 2)           \
  X(cuMemMapArrayAsync_ptsz, (CUarrayMapInfo*, unsigned int, CUstream), "cuMemMapArrayAsync", 11010, 1)      \
  X(cuArrayCreate, (CUarray*, const CUDA_ARRAY_DESCRIPTOR_v1*), "cuArrayCreate", 2000, 0)                    \
  X(cuArrayCreate_v2, (CUarray*, const CUDA_ARRAY_DESCRIPTOR*), "cuArrayCreate", 3020, 0)                    \
  X(cuArray3DCreate, (CUarray*, const CUDA_ARRAY3D_DESCRIPTOR_v1*), "cuArray3DCreate", 2000, 0)              \
  X(cuArray3DCreate_v2, (CUarray*, const CUDA_ARRAY3D_DESCRIPTOR*), "cuArray3DCreate", 3020, 0)              \
  X(cuMipmappedArrayCreate, (CUmipmappedArray*, const CUDA_ARRAY3D_DESCRIPTOR*, unsigned int),               \
    "cuMipmappedArrayCreate", 5000, 0)                                                                       \
  X(cuArrayDestroy, (CUarray), "cuArrayDestroy", 2000, 0)                                                    \
  X(cuMipmappedArrayDestroy, (CUmipmappedArray), "cuMipmappedArrayDestroy", 5000, 0)                         \
  X(cuMemAllocAsync, (CUdeviceptr*, size_t, CUstream), "cuMemAllocAsync", 11020, 2)                          \
  X(cuMemAllocAsync_ptsz, (CUdeviceptr*, size_t, CUstream), "cuMemAllocAsync", 11020, 1)                     \
  X(cuMemAllocFromPoolAsync, (CUdeviceptr*, size_t, CUmemoryPool, CUstream), "cuMemAllocFromPoolAsync",      \
    11020, 2)                                                                                                \
  X(cuMemAllocFromPoolAsync_ptsz, (CUdeviceptr*, size_t, CUmemoryPool, CUstream), "cuMemAllocFromPoolAsync", \
    11020, 1)                                                                                                \
  X(cuMemFreeAsync, (CUdeviceptr, CUstream), "cuMemFreeAsync", 11020, 2)                                     \
  X(cuMemFreeAsync_ptsz, (CUdeviceptr, CUstream), "cuMemFreeAsync", 11020, 1)                                \
  X(cuCtxSynchronize, (void), "cuCtxSynchronize", 2000, 0)                                                   \
  X(cuCtxSynchronize_v2, (CUcontext), "cuCtxSynchronize", 13000, 0)                                          \
  X(cuStreamSynchronize, (CUstream), "cuStreamSynchronize", 2000, 2)                                         \
  X(cuStreamSynchronize_ptsz, (CUstream), "cuStreamSynchronize", 7000, 1)                                    \
  X(cuEventSynchronize, (CUevent), "cuEventSynchronize", 2000, 0)                                            \
  X(cuMemPoolCreate, (CUmemoryPool*, const CUmemPoolProps*), "cuMemPoolCreate", 11020, 0)                    \
  X(cuMemPoolDestroy, (CUmemoryPool), "cuMemPoolDestroy", 11020, 0)                                          \
  X(cuMemPoolTrimTo, (CUmemoryPool, size_t), "cuMemPoolTrimTo", 11020, 0)                                    \
  X(cuMemPoolImportPointer, (CUdeviceptr*, CUmemoryPool, CUmemPoolPtrExportData*), "cuMemPoolImportPointer", \
    11020, 0)                                                                                                \
  X(cuDeviceGraphMemTrim, (CUdevice), "cuDeviceGraphMemTrim", 11040, 0)                                      \
  X(cuGraphInstantiate, (CUgraphExec*, CUgraph, CUgraphNode*, char*, size_t), "cuGraphInstantiate", 10000,   \
    0)                                                                                                       \
  X(cuGraphInstantiate_v2, (CUgraphExec*, CUgraph, CUgraphNode*, char*, size_t), "cuGraphInstantiate",       \
    11000, 0)                                                                                                \
  X(cuGraphInstantiateWithFlags, (CUgraphExec*, CUgraph, unsigned long long), "cuGraphInstantiateWithFlags", \
    11040, 0)                                                                                                \
  X(cuGraphInstantiateWithParams, (CUgraphExec*, CUgraph, CUDA_GRAPH_INSTANTIATE_PARAMS*),                   \
    "cuGraphInstantiateWithParams", 12000, 2)                                                                \
  X(cuGraphInstantiateWithParams_ptsz, (CUgraphExec*, CUgraph, CUDA_GRAPH_INSTANTIATE_PARAMS*),              \
    "cuGraphInstantiateWithParams", 12000, 1)                                                                \
  X(cuGraphUpload, (CUgraphExec, CUstream), "cuGraphUpload", 11010, 2)                                       \
  X(cuGraphUpload_ptsz, (CUgraphExec, CUstream), "cuGraphUpload", 11010, 1)                                  \
  X(cuGraphLaunch, (CUgraphExec, CUstream), "cuGraphLaunch", 10000, 2)                                       \
  X(cuGraphLaunch_ptsz, (CUgraphExec, CUstream), "cuGraphLaunch", 10000, 1)                                  \
  X(cuGraphExecDestroy, (CUgraphExec), "cuGraphExecDestroy", 10000, 0)                                       \
  X(cuCtxCreate, (CUcontext*, unsigned int, CUdevice), "cuCtxCreate", 2000, 0)                               \
  X(cuCtxCreate_v2, (CUcontext*, unsigned int, CUdevice), "cuCtxCreate", 3020, 0)                            \
  X(cuCtxCreate_v3, (CUcontext*, CUexecAffinityParam*, int, unsigned int, CUdevice), "cuCtxCreate", 11040,   \
    0)                                                                                                       \
  X(cuCtxCreate_v4, (CUcontext*, CUctxCreateParams*, unsigned int, CUdevice), "cuCtxCreate", 12050, 0)       \
  X(cuCtxDestroy, (CUcontext), "cuCtxDestroy", 2000, 0)                                                      \
  X(cuCtxDestroy_v2, (CUcontext), "cuCtxDestroy", 4000, 0)                                                   \
  X(cuDevicePrimaryCtxRetain, (CUcontext*, CUdevice), "cuDevicePrimaryCtxRetain", 7000, 0)                   \
  X(cuDevicePrimaryCtxRelease, (CUdevice), "cuDevicePrimaryCtxRelease", 7000, 0)                             \
  X(cuDevicePrimaryCtxRelease_v2, (CUdevice), "cuDevicePrimaryCtxRelease", 11000, 0)                         \
  X(cuDevicePrimaryCtxReset, (CUdevice), "cuDevicePrimaryCtxReset", 7000, 0)                                 \
  X(cuDevicePrimaryCtxReset_v2, (CUdevice), "cuDevicePrimaryCtxReset", 11000, 0)                             \
  X(cuGreenCtxCreate, (CUgreenCtx*, CUdevResourceDesc, CUdevice, unsigned int), "cuGreenCtxCreate", 12040,   \
    0)                                                                                                       \
  X(cuGreenCtxDestroy, (CUgreenCtx), "cuGreenCtxDestroy", 12040, 0)                                          \
  X(cuCtxSetLimit, (CUlimit, size_t), "cuCtxSetLimit", 3010, 0)                                              \
  X(cuModuleLoad, (CUmodule*, const char*), "cuModuleLoad", 2000, 0)                                         \
  X(cuModuleLoadData, (CUmodule*, const void*), "cuModuleLoadData", 2000, 0)                                 \
  X(cuModuleLoadDataEx, (CUmodule*, const void*, unsigned int, CUjit_option*, void**), "cuModuleLoadDataEx", \
    2010, 0)                                                                                                 \
  X(cuModuleLoadFatBinary, (CUmodule*, const void*), "cuModuleLoadFatBinary", 2000, 0)                       \
  X(cuModuleUnload, (CUmodule), "cuModuleUnload", 2000, 0)                                                   \
  X(cuLibraryLoadData,                                                                                       \
    (CUlibrary*, const void*, CUjit_option*, void**, unsigned int, CUlibraryOption*, void**, unsigned int),  \
    "cuLibraryLoadData", 12000, 0)                                                                           \
  X(cuLibraryLoadFromFile,                                                                                   \
    (CUlibrary*, const char*, CUjit_option*, void**, unsigned int, CUlibraryOption*, void**, unsigned int),  \
    "cuLibraryLoadFromFile", 12000, 0)                                                                       \
  X(cuLibraryUnload, (CUlibrary), "cuLibraryUnload", 12000, 0)                                               \
  X(cuIpcOpenMemHandle, (CUdeviceptr*, CUipcMemHandle, unsigned int), "cuIpcOpenMemHandle", 4010, 0)         \
  X(cuIpcOpenMemHandle_v2, (CUdeviceptr*, CUipcMemHandle, unsigned int), "cuIpcOpenMemHandle", 11000, 0)     \
  X(cuIpcCloseMemHandle, (CUdeviceptr), "cuIpcCloseMemHandle", 4010, 0)                                      \
  X(cuImportExternalMemory, (CUexternalMemory*, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC*),                    \
    "cuImportExternalMemory", 10000, 0)                                                                      \
  X(cuDestroyExternalMemory, (CUexternalMemory), "cuDestroyExternalMemory", 10000, 0)                        \
  X(cuLaunch, (CUfunction), "cuLaunch", 2000, 0)                                                             \
  X(cuLaunchGrid, (CUfunction, int, int), "cuLaunchGrid", 2000, 0)                                           \
  X(cuLaunchGridAsync, (CUfunction, int, int, CUstream), "cuLaunchGridAsync", 2000, 0)                       \
  X(cuLaunchKernel, KERNEL_PARAMETERS(void**, void**), "cuLaunchKernel", 4000, 2)                            \
  X(cuLaunchKernel_ptsz, KERNEL_PARAMETERS(void**, void**), "cuLaunchKernel", 7000, 1)                       \
  X(cuLaunchKernelEx, (const CUlaunchConfig*, CUfunction, void**, void**), "cuLaunchKernelEx", 11060, 2)     \
  X(cuLaunchKernelEx_ptsz, (const CUlaunchConfig*, CUfunction, void**, void**), "cuLaunchKernelEx", 11060,   \
    1)                                                                                                       \
  X(cuLaunchCooperativeKernel, KERNEL_PARAMETERS(void**), "cuLaunchCooperativeKernel", 9000, 2)              \
  X(cuLaunchCooperativeKernel_ptsz, KERNEL_PARAMETERS(void**), "cuLaunchCooperativeKernel", 9000, 1)         \
  X(cuLaunchCooperativeKernelMultiDevice, (CUDA_LAUNCH_PARAMS*, unsigned int, unsigned int),                 \
    "cuLaunchCooperativeKernelMultiDevice", 9000, 0)

/* What ours asks the driver besides. */
#define ASKED(X)                                                                     \
  X(cuCtxGetDevice, (CUdevice*), asked)                                              \
  X(cuCtxGetCurrent, (CUcontext*), asked)                                            \
  X(cuCtxGetLimit, (size_t*, CUlimit), asked)                                        \
  X(cuDeviceGetCount, (int*), asked)                                                 \
  X(cuDeviceGetUuid, (CUuuid*, CUdevice), asked)                                     \
  X(cuDeviceGetUuid_v2, (CUuuid*, CUdevice), asked)                                  \
  X(cuDevicePrimaryCtxGetState, (CUdevice, unsigned int*, int*), asked)              \
  X(cuDeviceGetMemPool, (CUmemoryPool*, CUdevice), asked)                            \
  X(cuDeviceGetDefaultMemPool, (CUmemoryPool*, CUdevice), asked)                     \
  X(cuDeviceGetGraphMemAttribute, (CUdevice, CUgraphMem_attribute, void*), asked)    \
  X(cuMemPoolGetAttribute, (CUmemoryPool, CUmemPool_attribute, void*), asked)        \
  X(cuMemGetAddressRange_v2, (CUdeviceptr*, size_t*, CUdeviceptr), asked)            \
  X(cuStreamIsCapturing, (CUstream, CUstreamCaptureStatus*), asked)                  \
  X(cuStreamIsCapturing_ptsz, (CUstream, CUstreamCaptureStatus*), asked)             \
  X(cuGraphGetNodes, (CUgraph, CUgraphNode*, size_t*), asked)                        \
  X(cuGraphNodeGetType, (CUgraphNode, CUgraphNodeType*), asked)                      \
  X(cuGraphMemAllocNodeGetParams, (CUgraphNode, CUDA_MEM_ALLOC_NODE_PARAMS*), asked) \
  X(cuGraphChildGraphNodeGetGraph, (CUgraphNode, CUgraph*), asked)                   \
  X(cuCtxSetCurrent, (CUcontext), asked)                                             \
  X(cuCtxPushCurrent_v2, (CUcontext), asked)                                         \
  X(cuCtxPopCurrent_v2, (CUcontext*), asked)                                         \
  X(cuStreamGetCtx, (CUstream, CUcontext*), asked)                                   \
  X(cuEventCreate, (CUevent*, unsigned int), asked)                                  \
  X(cuEventDestroy_v2, (CUevent), asked)                                             \
  X(cuEventRecord, (CUevent, CUstream), asked)                                       \
  X(cuEventRecord_ptsz, (CUevent, CUstream), asked)                                  \
  X(cuEventQuery, (CUevent), asked)                                                  \
  X(cuEventElapsedTime, (float*, CUevent, CUevent), asked)                           \
  X(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode*), asked)

/* Those of the driver, resolved when our library is loaded. One that it lacks answers CUDA_ERROR_NOT_FOUND.
 */
#define FIELD(name, parameters, ...) CUresult(*name) parameters;
struct driver {
  COVERED(FIELD)
  ASKED(FIELD)
};
#undef FIELD
extern struct driver real;

/* Ours, or null when the driver's answer to cuGetProcAddress() stands. */
void* covered_function(const char* name, void* answer, int version, cuuint64_t flags);

/* A file in the folder of the driver's library, into `path`; false when there is none such. */
#define DRIVER_PATH_SIZE 4096
int driver_neighbour(const char* file, char path[DRIVER_PATH_SIZE]);

/* All of ours, as the driver declares them. */
#define DECLARE(name, parameters, ...) EXPORT CUresult name parameters;
COVERED(DECLARE)
#undef DECLARE

// NVIDIA's CUDA driver interface as Drover sees it: what crosses the boundary to libcuda.so.1.
//
// Clients load the library at run time, so they use the prototypes only as types (`decltype(&cuInit)`), and
// never link; the simulator defines the same functions. Every call returns a CUresult, may be made from any
// thread, and answers CUDA_ERROR_NOT_INITIALIZED in a child of fork(). Names end as the library exports them:
// _v2 and so on are later revisions; _ptds and _ptsz have a default stream for each thread.
#pragma once

#include "gpu/cuda_functions.h"  // IWYU pragma: export
#include "gpu/cuda_types.h"      // IWYU pragma: export

// The layout is the contract with a library that we do not build.
static_assert(sizeof(CUuuid) == 16, "CUuuid");
static_assert(sizeof(CUipcMemHandle) == 64, "CUipcMemHandle");
static_assert(sizeof(CUmemLocation) == 8, "CUmemLocation");
static_assert(sizeof(CUmemAccessDesc) == 12, "CUmemAccessDesc");
static_assert(sizeof(CUmemAllocationProp) == 32, "CUmemAllocationProp");
static_assert(sizeof(CUmemPoolProps) == 88, "CUmemPoolProps");
static_assert(offsetof(CUmemPoolProps, maxSize) == 24, "CUmemPoolProps.maxSize");
static_assert(sizeof(CUDA_ARRAY_DESCRIPTOR) == 24, "CUDA_ARRAY_DESCRIPTOR");
static_assert(sizeof(CUDA_ARRAY3D_DESCRIPTOR) == 40, "CUDA_ARRAY3D_DESCRIPTOR");
static_assert(sizeof(CUDA_ARRAY_MEMORY_REQUIREMENTS) == 32, "CUDA_ARRAY_MEMORY_REQUIREMENTS");
static_assert(sizeof(CUDA_MEMCPY2D) == 128, "CUDA_MEMCPY2D");
static_assert(sizeof(CUDA_MEMCPY3D) == 200, "CUDA_MEMCPY3D");
static_assert(sizeof(CUDA_MEMSET_NODE_PARAMS) == 40, "CUDA_MEMSET_NODE_PARAMS");
static_assert(sizeof(CUDA_KERNEL_NODE_PARAMS) == 72, "CUDA_KERNEL_NODE_PARAMS");
static_assert(offsetof(CUDA_KERNEL_NODE_PARAMS, kern) == 56, "CUDA_KERNEL_NODE_PARAMS.kern");
static_assert(sizeof(CUDA_MEM_ALLOC_NODE_PARAMS) == 120, "CUDA_MEM_ALLOC_NODE_PARAMS");
static_assert(sizeof(CUgraphNodeParams) == 256, "CUgraphNodeParams");
static_assert(offsetof(CUgraphNodeParams, kernel) == 16, "CUgraphNodeParams.kernel");
static_assert(sizeof(CUgraphEdgeData) == 8, "CUgraphEdgeData");
static_assert(sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS) == 32, "CUDA_GRAPH_INSTANTIATE_PARAMS");
static_assert(sizeof(CUgraphExecUpdateResultInfo) == 24, "CUgraphExecUpdateResultInfo");
static_assert(sizeof(CUlaunchAttribute) == 72, "CUlaunchAttribute");
static_assert(sizeof(CUlaunchConfig) == 56, "CUlaunchConfig");
static_assert(sizeof(CUdevprop) == 56, "CUdevprop");

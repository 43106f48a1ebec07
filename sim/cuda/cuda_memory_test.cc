// The built library's memory, as one client sees it.

#include <gmock/gmock.h>

#include <chrono>
#include <vector>

#include "sim/testing/cuda_client.h"

namespace drover::sim {
namespace {

class CudaMemoryTest : public CudaTest {};

CUmemAllocationProp on_gpu_0() {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  return properties;
}

TEST_F(CudaMemoryTest, MemoryIsTakenInBlocks) {
  in_context([] {
    const auto before = free_mib();
    std::vector<CUdeviceptr> small;
    for (int i = 0; i < 100; ++i) small.push_back(allocate(1000));
    EXPECT_EQ(free_mib(), before - 2);
    const auto large = allocate(3 * kMib);
    EXPECT_EQ(free_mib(), before - 6);
    for (const auto address : small) EXPECT_EQ(CUDA(cuMemFree_v2)(address), CUDA_SUCCESS);
    EXPECT_EQ(CUDA(cuMemFree_v2)(large + 16), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(CUDA(cuMemFree_v2)(large), CUDA_SUCCESS);
    EXPECT_EQ(CUDA(cuMemFree_v2)(large), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(free_mib(), before);
    CUdeviceptr address = 0;
    for (const size_t size : {(before + 2) * kMib, size_t{1} << 60, ~size_t{0}})
      EXPECT_EQ(CUDA(cuMemAlloc_v2)(&address, size), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(CUDA(cuMemAlloc_v2)(&address, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(CUDA(cuMemAlloc_v2)(&address, before * kMib), CUDA_SUCCESS) << "all of it";
    EXPECT_EQ(free_mib(), 0U);
  });
}

TEST_F(CudaMemoryTest, CopiesMoveBytes) {
  in_context([] {
    std::vector<char> sent(10'000);
    for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<char>(i * 7);
    std::vector<char> received(sent.size());
    const auto a = allocate(sent.size());
    const auto b = allocate(sent.size());
    EXPECT_EQ(CUDA(cuMemcpyHtoD_v2)(a, sent.data(), sent.size()), CUDA_SUCCESS);
    EXPECT_EQ(CUDA(cuMemcpyDtoDAsync_v2)(b, a, sent.size(), nullptr), CUDA_SUCCESS);
    EXPECT_EQ(CUDA(cuMemcpyDtoH_v2)(received.data(), b, sent.size()), CUDA_SUCCESS);
    EXPECT_EQ(received, sent);
    EXPECT_EQ(CUDA(cuMemcpyHtoD_v2)(a, sent.data(), sent.size() + 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(CUDA(cuMemcpyHtoD_v2)(12345, sent.data(), 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(CUDA(cuMemsetD32_v2)(b, 0x01020304, 4), CUDA_SUCCESS);
    EXPECT_EQ(CUDA(cuMemsetD2D8_v2)(b, 100, 9, 10, 2), CUDA_SUCCESS);
    EXPECT_EQ(CUDA(cuMemcpy)(reinterpret_cast<CUdeviceptr>(received.data()), b, 200), CUDA_SUCCESS);
    EXPECT_EQ(received[9], 9);
    EXPECT_EQ(received[10], 2);
    EXPECT_EQ(received[109], 9);
    EXPECT_EQ(received[110], sent[110]);
    CUmemorytype type = 0;
    EXPECT_EQ(CUDA(cuPointerGetAttribute)(&type, 2, b + 5), CUDA_SUCCESS);
    EXPECT_EQ(type, CU_MEMORYTYPE_DEVICE);
    EXPECT_EQ(CUDA(cuPointerGetAttribute)(&type, 2, reinterpret_cast<CUdeviceptr>(&type)),
              CUDA_ERROR_INVALID_VALUE);
  });
}

TEST_F(CudaMemoryTest, PoolsReserveMoreThanTheyUse) {
  in_context([] {
    CUmemoryPool pool = nullptr;
    EXPECT_EQ(CUDA(cuDeviceGetDefaultMemPool)(&pool, 0), CUDA_SUCCESS);
    const auto get = [&](int attribute) {
      cuuint64_t value = 99;
      EXPECT_EQ(CUDA(cuMemPoolGetAttribute)(pool, attribute, &value), CUDA_SUCCESS);
      return value;
    };
    const auto before = free_mib();
    CUdeviceptr address = 0;
    EXPECT_EQ(CUDA(cuMemAllocAsync)(&address, 40 * kMib, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(get(CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 40 * kMib);
    EXPECT_EQ(get(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 64 * kMib);
    EXPECT_EQ(free_mib(), before - 64);
    EXPECT_EQ(CUDA(cuMemFreeAsync)(address, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(get(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 64 * kMib) << "nobody has waited";
    EXPECT_EQ(CUDA(cuStreamSynchronize)(nullptr), CUDA_SUCCESS);
    EXPECT_EQ(free_mib(), before);
    EXPECT_EQ(CUDA(cuMemAllocAsync)(&address, before * kMib + 1, nullptr), CUDA_ERROR_OUT_OF_MEMORY);
    CUmemPoolProps properties{};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    properties.maxSize = 8 * kMib;
    EXPECT_EQ(CUDA(cuMemPoolCreate)(&pool, &properties), CUDA_SUCCESS);
    EXPECT_EQ(CUDA(cuMemAllocFromPoolAsync)(&address, 9 * kMib, pool, nullptr), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(CUDA(cuMemAllocFromPoolAsync)(&address, 8 * kMib, pool, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(CUDA(cuMemFree_v2)(address), CUDA_SUCCESS);
    EXPECT_EQ(CUDA(cuMemPoolDestroy)(pool), CUDA_SUCCESS);
    EXPECT_EQ(free_mib(), before);
  });
}

TEST_F(CudaMemoryTest, MappedMemoryLivesAsLongAsSomebodyHasIt) {
  in_context([] {
    const auto before = free_mib();
    const auto properties = on_gpu_0();
    CUmemGenericAllocationHandle memory = 0;
    CUdeviceptr at = 0;
    EXPECT_EQ(CUDA(cuMemCreate)(&memory, kMib, &properties, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(CUDA(cuMemCreate)(&memory, 4 * kMib, &properties, 0), CUDA_SUCCESS);
    EXPECT_EQ(CUDA(cuMemAddressReserve)(&at, 8 * kMib, 0, 0, 0), CUDA_SUCCESS);
    EXPECT_EQ(CUDA(cuMemMap)(at, 4 * kMib, 0, memory, 0), CUDA_SUCCESS);
    EXPECT_EQ(CUDA(cuMemMap)(at + 4 * kMib, 4 * kMib, 0, memory, 0), CUDA_SUCCESS);
    EXPECT_EQ(CUDA(cuMemMap)(at, 4 * kMib, 0, memory, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(CUDA(cuMemsetD8_v2)(at, 1, 1), CUDA_ERROR_INVALID_VALUE) << "no access yet";
    const CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    EXPECT_EQ(CUDA(cuMemSetAccess)(at, 8 * kMib, &access, 1), CUDA_SUCCESS);
    EXPECT_EQ(CUDA(cuMemsetD8_v2)(at + 5, 42, 1), CUDA_SUCCESS);
    char seen = 0;
    EXPECT_EQ(CUDA(cuMemcpyDtoH_v2)(&seen, at + 4 * kMib + 5, 1), CUDA_SUCCESS);
    EXPECT_EQ(seen, 42) << "the same memory at two addresses";
    EXPECT_EQ(CUDA(cuMemRelease)(memory), CUDA_SUCCESS);
    EXPECT_EQ(free_mib(), before - 4) << "still mapped";
    EXPECT_EQ(CUDA(cuMemAddressFree)(at, 8 * kMib), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(CUDA(cuMemUnmap)(at, 4 * kMib), CUDA_SUCCESS);
    EXPECT_EQ(CUDA(cuMemRetainAllocationHandle)(&memory, reinterpret_cast<void*>(at + 4 * kMib)),
              CUDA_SUCCESS);
    EXPECT_EQ(CUDA(cuMemUnmap)(at + 4 * kMib, 4 * kMib), CUDA_SUCCESS);
    EXPECT_EQ(free_mib(), before - 4) << "its handle was retained";
    EXPECT_EQ(CUDA(cuMemRelease)(memory), CUDA_SUCCESS);
    EXPECT_EQ(free_mib(), before);
    EXPECT_EQ(CUDA(cuMemRelease)(memory), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(CUDA(cuMemAddressFree)(at, 8 * kMib), CUDA_SUCCESS);
    EXPECT_EQ(CUDA(cuMemCreate)(&memory, (before + 2) * kMib, &properties, 0), CUDA_ERROR_OUT_OF_MEMORY);
  });
}

TEST_F(CudaMemoryTest, ArraysTakeMemory) {
  in_context([] {
    const auto before = free_mib();
    CUarray array = nullptr;
    const CUDA_ARRAY3D_DESCRIPTOR shape{1000, 1000, 4, 32, 1, 0};
    EXPECT_EQ(CUDA(cuArray3DCreate_v2)(&array, &shape), CUDA_SUCCESS);
    CUDA_ARRAY_MEMORY_REQUIREMENTS needed{};
    EXPECT_EQ(CUDA(cuArrayGetMemoryRequirements)(&needed, array, 0), CUDA_SUCCESS);
    EXPECT_GE(needed.size, 16'000'000U);
    EXPECT_EQ(free_mib(), before - 16);
    std::vector<float> row{1, 2, 3, 4};
    CUDA_MEMCPY3D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = row.data();
    copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.dstArray = array;
    copy.dstY = 999;
    copy.dstZ = 3;
    copy.WidthInBytes = 16;
    copy.Height = copy.Depth = 1;
    EXPECT_EQ(CUDA(cuMemcpy3D_v2)(&copy), CUDA_SUCCESS);
    copy.dstZ = 4;
    EXPECT_EQ(CUDA(cuMemcpy3D_v2)(&copy), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(CUDA(cuArrayDestroy)(array), CUDA_SUCCESS);
    CUmipmappedArray mipmap = nullptr;
    EXPECT_EQ(CUDA(cuMipmappedArrayCreate)(&mipmap, &shape, 3), CUDA_SUCCESS);
    EXPECT_LT(free_mib(), before - 16);
    EXPECT_EQ(CUDA(cuMipmappedArrayDestroy)(mipmap), CUDA_SUCCESS);
    EXPECT_EQ(free_mib(), before);
    const CUDA_ARRAY3D_DESCRIPTOR vast{16384, 16384, 16384, 32, 4, 0};
    EXPECT_EQ(CUDA(cuArray3DCreate_v2)(&array, &vast), CUDA_ERROR_OUT_OF_MEMORY);
  });
}

TEST_F(CudaMemoryTest, GraphsTakeMemoryWhenTheyAreLaunched) {
  in_context([] {
    const auto before = free_mib();
    const auto reserved = [] {
      cuuint64_t value = 99;
      EXPECT_EQ(CUDA(cuDeviceGetGraphMemAttribute)(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &value),
                CUDA_SUCCESS);
      return value / kMib;
    };
    CUgraph graph = nullptr;
    CUgraphNode node = nullptr;
    CUgraphExec exec = nullptr;
    EXPECT_EQ(CUDA(cuGraphCreate)(&graph, 0), CUDA_SUCCESS);
    CUDA_MEM_ALLOC_NODE_PARAMS params{};
    params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    params.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    params.bytesize = 100 * kMib;
    EXPECT_EQ(CUDA(cuGraphAddMemAllocNode)(&node, graph, nullptr, 0, &params), CUDA_SUCCESS);
    EXPECT_EQ(CUDA(cuGraphInstantiateWithFlags)(&exec, graph, 0), CUDA_SUCCESS);
    EXPECT_EQ(free_mib(), before);
    EXPECT_EQ(CUDA(cuGraphLaunch)(exec, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(reserved(), 100U);
    EXPECT_EQ(free_mib(), before - 100);
    EXPECT_EQ(CUDA(cuGraphLaunch)(exec, nullptr), CUDA_ERROR_INVALID_VALUE) << "it is not freed";
    EXPECT_EQ(CUDA(cuMemsetD8_v2)(params.dptr, 1, params.bytesize), CUDA_SUCCESS);
    EXPECT_EQ(CUDA(cuMemFree_v2)(params.dptr), CUDA_SUCCESS);
    EXPECT_EQ(free_mib(), before - 100) << "kept for the next launch";
    EXPECT_EQ(CUDA(cuDeviceGraphMemTrim)(0), CUDA_SUCCESS);
    EXPECT_EQ(free_mib(), before);
  });
}

TEST_F(CudaMemoryTest, AnAllocationCostsTheSameBesideManyOthers) {
  in_context([] {
    const auto measure = [] {
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < 2000; ++i) EXPECT_EQ(CUDA(cuMemFree_v2)(allocate(1000)), CUDA_SUCCESS);
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    };
    allocate(1000);
    const double few = measure();
    for (int i = 0; i < 10'000; ++i) allocate(1000);
    EXPECT_LT(measure(), 20 * few);
  });
}

}  // namespace
}  // namespace drover::sim

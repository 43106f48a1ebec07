// By every way to allocate, a program fills its share and gets no more.

#include "guard/testing/container.h"

namespace drover::guard {
namespace {

using Allocate = std::function<CUresult(Client&)>;

CUresult map_and_release(Client& client) {
  const auto prop = on_device();
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr address = 0;
  if (const auto result = CALL(client.cuda, cuMemCreate)(&handle, kPiece, &prop, 0)) return result;
  EXPECT_EQ(CALL(client.cuda, cuMemAddressReserve)(&address, kPiece, 0, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(CALL(client.cuda, cuMemMap)(address, kPiece, 0, handle, 0), CUDA_SUCCESS);
  return CALL(client.cuda, cuMemRelease)(handle);
}

CUresult allocate_in_graph(Client& client) {
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  CUgraphNode node = nullptr;
  CUDA_MEM_ALLOC_NODE_PARAMS params{};
  params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  params.bytesize = kPiece;
  EXPECT_EQ(CALL(client.cuda, cuGraphCreate)(&graph, 0), CUDA_SUCCESS);
  if (const auto result = CALL(client.cuda, cuGraphAddMemAllocNode)(&node, graph, nullptr, 0, &params))
    return result;
  if (const auto result = CALL(client.cuda, cuGraphInstantiateWithFlags)(&exec, graph, 0)) return result;
  return CALL(client.cuda, cuGraphLaunch)(exec, nullptr);
}

Allocate from_pool() {
  return [pool = CUmemoryPool{}](Client& client) mutable {
    CUmemPoolProps props{};
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CUdeviceptr address = 0;
    if (pool == nullptr) EXPECT_EQ(CALL(client.cuda, cuMemPoolCreate)(&pool, &props), CUDA_SUCCESS);
    return CALL(client.cuda, cuMemAllocFromPoolAsync)(&address, kPiece, pool, nullptr);
  };
}

Allocate heap_limit() {
  return [size = std::size_t{8 << 20}](Client& client) mutable {
    return CALL(client.cuda, cuCtxSetLimit)(CU_LIMIT_MALLOC_HEAP_SIZE, size += kPiece);
  };
}

const std::map<std::string, std::function<Allocate()>>& kinds() {
  static const std::map<std::string, std::function<Allocate()>> all{
      {"Alloc", [] { return [](Client& client) { return client.allocate(kPiece); }; }},
      {"SmallAlloc", [] { return [](Client& client) { return client.allocate(600 * 1024); }; }},
      {"Pitch",
       [] {
         return [](Client& client) {
           CUdeviceptr address = 0;
           std::size_t pitch = 0;
           return CALL(client.cuda, cuMemAllocPitch_v2)(&address, &pitch, 2000, 1024, 4);
         };
       }},
      {"Managed",
       [] {
         return [](Client& client) {
           CUdeviceptr address = 0;
           return CALL(client.cuda, cuMemAllocManaged)(&address, kPiece, 1);
         };
       }},
      {"Async",
       [] {
         return [](Client& client) {
           CUdeviceptr address = 0;
           return CALL(client.cuda, cuMemAllocAsync)(&address, kPiece, nullptr);
         };
       }},
      {"AsyncPerThread",
       [] {
         return [](Client& client) {
           CUdeviceptr address = 0;
           return CALL(client.cuda, cuMemAllocAsync_ptsz)(&address, kPiece, nullptr);
         };
       }},
      {"Pool", [] { return from_pool(); }},
      {"Physical",
       [] {
         return [](Client& client) {
           const auto prop = on_device();
           CUmemGenericAllocationHandle handle = 0;
           return CALL(client.cuda, cuMemCreate)(&handle, kPiece, &prop, 0);
         };
       }},
      {"MappedAndReleased", [] { return map_and_release; }},
      {"Array",
       [] {
         return [](Client& client) {
           CUarray array = nullptr;
           const CUDA_ARRAY_DESCRIPTOR descriptor{1024, 512, 0x20, 1};
           return CALL(client.cuda, cuArrayCreate_v2)(&array, &descriptor);
         };
       }},
      {"Array3D",
       [] {
         return [](Client& client) {
           CUarray array = nullptr;
           const CUDA_ARRAY3D_DESCRIPTOR descriptor{128, 128, 32, 0x20, 1, 0};
           return CALL(client.cuda, cuArray3DCreate_v2)(&array, &descriptor);
         };
       }},
      {"Mipmap",
       [] {
         return [](Client& client) {
           CUmipmappedArray array = nullptr;
           const CUDA_ARRAY3D_DESCRIPTOR descriptor{512, 512, 0, 0x20, 1, 0};
           return CALL(client.cuda, cuMipmappedArrayCreate)(&array, &descriptor, 3);
         };
       }},
      {"Graph", [] { return allocate_in_graph; }},
      {"HeapLimit", [] { return heap_limit(); }},
      {"Module",
       [] {
         return [](Client& client) {
           CUmodule module = nullptr;
           return CALL(client.cuda, cuModuleLoadData)(&module, module_of(kPiece).c_str());
         };
       }},
  };
  return all;
}

class EveryWay : public Container, public testing::WithParamInterface<std::string> {};

TEST_P(EveryWay, FillsTheShareAndNoMore) {
  limit({{0, kGib}});
  run_cuda([&](Client& client) {
    const auto allocate = kinds().at(GetParam())();
    std::uint64_t most = 0, pieces = 0;
    CUresult result = CUDA_SUCCESS;
    while ((result = allocate(client)) == CUDA_SUCCESS && ++pieces < 10'000)
      most = std::max(most, client.given());
    EXPECT_EQ(result, CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_LE(client.given(), kGib);
    EXPECT_LE(most, kGib);
    const auto reached = GetParam() == "Managed" ? kContext + pieces * kPiece : client.given();
    EXPECT_GE(reached, kGib - 4 * kMib);
    // Nobody else is charged for it, and nothing is left that fits nowhere.
    EXPECT_EQ(client.allocate(64 * kMib), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_LE(client.free_bytes(), 4 * kMib);
    EXPECT_EQ(account_->refused[0], 2U) << "one for each that was";
  });
  run_cuda([](Client& client) { EXPECT_EQ(client.allocate(600 * kMib), CUDA_SUCCESS); });
}

std::vector<std::string> names_of_kinds() {
  std::vector<std::string> names;
  for (const auto& [name, kind] : kinds()) names.push_back(name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(All, EveryWay, testing::ValuesIn(names_of_kinds()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace drover::guard

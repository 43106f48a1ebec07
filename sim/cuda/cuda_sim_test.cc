// The built library, as one client sees it.

#include <gmock/gmock.h>

#include <chrono>
#include <fstream>
#include <mutex>
#include <sstream>
#include <thread>
#include <vector>

#include "sim/testing/cuda_client.h"

namespace drover::sim {
namespace {

using testing::HasSubstr;

class CudaSimTest : public CudaTest {};

TEST_F(CudaSimTest, NeedsInit) {
  in_process([] {
    int count = 0;
    CUcontext context = nullptr;
    EXPECT_EQ(CUDA(cuDeviceGetCount)(&count), CUDA_ERROR_NOT_INITIALIZED);
    EXPECT_EQ(CUDA(cuCtxGetCurrent)(&context), CUDA_ERROR_NOT_INITIALIZED);
    EXPECT_EQ(CUDA(cuDriverGetVersion)(&count), CUDA_SUCCESS);
    EXPECT_EQ(count, 12020);
    EXPECT_EQ(CUDA(cuInit)(1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(CUDA(cuInit)(0), CUDA_SUCCESS);
    EXPECT_EQ(CUDA(cuMemFree_v2)(0), CUDA_SUCCESS);
    size_t free = 0;
    EXPECT_EQ(CUDA(cuMemGetInfo_v2)(&free, &free), CUDA_ERROR_INVALID_CONTEXT);
  });
}

TEST_F(CudaSimTest, WithoutAProfileThereIsNoDevice) {
  ::setenv("DROVER_SIM_PROFILE", "/nonexistent.yaml", 1);
  in_process([] { EXPECT_EQ(CUDA(cuInit)(0), CUDA_ERROR_NO_DEVICE); });
}

TEST_F(CudaSimTest, EveryNameIsFoundByVersionAndFlag) {
  in_process([] {
    std::size_t names = 0;
    for (const char* list : {"machine", "memory", "work"}) {
      std::ifstream file(std::string(SIM_CUDA_NAMES) + "/" + list + ".txt");
      for (std::string line; std::getline(file, line);) {
        if (!line.starts_with("cu")) continue;
        std::istringstream words(line);
        std::string name;
        words >> name;
        for (std::string variant; words >> variant; ++names) {
          std::size_t digits = 0;
          const int version = std::stoi(variant, &digits);
          const auto symbol = name + variant.substr(digits);
          EXPECT_NE(cuda_symbol(symbol.c_str()), nullptr) << symbol;
          const bool per_thread = symbol.ends_with("_ptds") || symbol.ends_with("_ptsz");
          void* found = nullptr;
          CUdriverProcAddressQueryResult status = -1;
          EXPECT_EQ(CUDA(cuGetProcAddress_v2)(name.c_str(), &found, version, per_thread ? 2 : 0, &status),
                    CUDA_SUCCESS);
          if (version > 12020) continue;  // the driver is older
          EXPECT_EQ(found, cuda_symbol(symbol.c_str())) << symbol;
          EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SUCCESS);
        }
      }
    }
    EXPECT_GT(names, 700U);
  });
}

TEST_F(CudaSimTest, NamesHaveTheirVersions) {
  in_process([] {
    const auto find = [](const char* name, int version, cuuint64_t flags = 0) {
      void* found = nullptr;
      CUdriverProcAddressQueryResult status = -1;
      EXPECT_EQ(CUDA(cuGetProcAddress_v2)(name, &found, version, flags, &status), CUDA_SUCCESS);
      return std::pair(found, status);
    };
    const auto is = [](const char* symbol) { return std::pair(cuda_symbol(symbol), 0); };
    EXPECT_EQ(find("cuMemAlloc", 2000), is("cuMemAlloc"));
    EXPECT_EQ(find("cuMemAlloc", 3020), is("cuMemAlloc_v2"));
    EXPECT_EQ(find("cuMemAlloc", 99999, 2), is("cuMemAlloc_v2"));
    EXPECT_EQ(find("cuCtxCreate", 3020), is("cuCtxCreate_v2"));
    EXPECT_EQ(find("cuMemcpyHtoD", 6050, 2), is("cuMemcpyHtoD_v2"));
    EXPECT_EQ(find("cuMemcpyHtoD", 7000, 2), is("cuMemcpyHtoD_v2_ptds"));
    EXPECT_EQ(find("cuLaunchKernel", 12000, 1), is("cuLaunchKernel"));
    EXPECT_EQ(find("cuLaunchKernel", 12000, 2), is("cuLaunchKernel_ptsz"));
    EXPECT_EQ(find("cuMemAlloc", 1000), std::pair(static_cast<void*>(nullptr), 2));
    EXPECT_EQ(find("cuMemAlloc_v2", 12000), std::pair(static_cast<void*>(nullptr), 1));
    EXPECT_EQ(find("", 12000), std::pair(static_cast<void*>(nullptr), 1));
    void* found = nullptr;
    EXPECT_EQ(CUDA(cuGetProcAddress)("cuNothing", &found, 12000, 0), CUDA_ERROR_NOT_FOUND);
    EXPECT_EQ(CUDA(cuGetProcAddress)("cuInit", &found, 12000, 4), CUDA_ERROR_INVALID_VALUE);
    const auto unsupported = reinterpret_cast<CUresult (*)()>(cuda_symbol("cuGreenCtxCreate"));
    EXPECT_EQ(unsupported(), CUDA_ERROR_NOT_SUPPORTED);
  });
}

TEST_F(CudaSimTest, DevicesAreTheProfiles) {
  in_process([] {
    EXPECT_EQ(CUDA(cuInit)(0), CUDA_SUCCESS);
    int count = 0;
    EXPECT_EQ(CUDA(cuDeviceGetCount)(&count), CUDA_SUCCESS);
    EXPECT_EQ(count, 8);
    char text[64];
    EXPECT_EQ(CUDA(cuDeviceGetName)(text, sizeof(text), 7), CUDA_SUCCESS);
    EXPECT_THAT(text, HasSubstr("H100"));
    EXPECT_EQ(CUDA(cuDeviceGetName)(text, sizeof(text), 8), CUDA_ERROR_INVALID_DEVICE);
    EXPECT_EQ(CUDA(cuDeviceGetPCIBusId)(text, sizeof(text), 3), CUDA_SUCCESS);
    CUdevice device = -1;
    EXPECT_EQ(CUDA(cuDeviceGetByPCIBusId)(&device, text), CUDA_SUCCESS);
    EXPECT_EQ(device, 3);
    size_t bytes = 0;
    EXPECT_EQ(CUDA(cuDeviceTotalMem_v2)(&bytes, 0), CUDA_SUCCESS);
    EXPECT_EQ(bytes >> 20, kTotalMib);
    int value = 0;
    EXPECT_EQ(CUDA(cuDeviceGetAttribute)(&value, 16, 0), CUDA_SUCCESS);
    EXPECT_EQ(value, 132);
    EXPECT_EQ(CUDA(cuDeviceGetAttribute)(&value, 0, 0), CUDA_ERROR_INVALID_VALUE);
    const char* name = nullptr;
    EXPECT_EQ(CUDA(cuGetErrorName)(CUDA_ERROR_OUT_OF_MEMORY, &name), CUDA_SUCCESS);
    EXPECT_STREQ(name, "CUDA_ERROR_OUT_OF_MEMORY");
    EXPECT_EQ(CUDA(cuGetErrorName)(static_cast<CUresult>(5555), &name), CUDA_ERROR_INVALID_VALUE);
  });
}

TEST_F(CudaSimTest, VisibleDevicesAreChosenInOrder) {
  ::setenv("CUDA_VISIBLE_DEVICES", "3,1,99,0", 1);
  in_process([] {
    EXPECT_EQ(CUDA(cuInit)(0), CUDA_SUCCESS);
    int count = 0;
    EXPECT_EQ(CUDA(cuDeviceGetCount)(&count), CUDA_SUCCESS);
    EXPECT_EQ(count, 2);
  });
  ::setenv("CUDA_VISIBLE_DEVICES", "", 1);
  in_process([] { EXPECT_EQ(CUDA(cuInit)(0), CUDA_ERROR_NO_DEVICE); });
}

TEST_F(CudaSimTest, AContextTakesMemoryAndGivesAllBack) {
  in_context([] {
    EXPECT_EQ(free_mib(), kTotalMib - kContextMib);
    CUcontext second = nullptr;
    EXPECT_EQ(CUDA(cuCtxCreate_v2)(&second, 0, 0), CUDA_SUCCESS);
    allocate(100 * kMib);
    EXPECT_EQ(CUDA(cuCtxSetLimit)(CU_LIMIT_MALLOC_HEAP_SIZE, 1032 * kMib), CUDA_SUCCESS);
    EXPECT_EQ(free_mib(), kTotalMib - 2 * kContextMib - 100 - 1024);
    EXPECT_EQ(CUDA(cuCtxSetLimit)(CU_LIMIT_MALLOC_HEAP_SIZE, 99999 * kMib), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(CUDA(cuCtxDestroy_v2)(second), CUDA_SUCCESS);
    EXPECT_EQ(CUDA(cuCtxDestroy_v2)(second), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(free_mib(), kTotalMib - kContextMib) << "the primary one is current again";
    const auto address = allocate(8);
    EXPECT_EQ(CUDA(cuDevicePrimaryCtxReset_v2)(0), CUDA_SUCCESS);
    EXPECT_EQ(free_mib(), kTotalMib - kContextMib) << "still retained";
    EXPECT_EQ(CUDA(cuMemFree_v2)(address), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(CUDA(cuDevicePrimaryCtxRelease_v2)(0), CUDA_SUCCESS);
    size_t free = 0;
    EXPECT_EQ(CUDA(cuMemGetInfo_v2)(&free, &free), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  });
}

TEST_F(CudaSimTest, SpinKeepsTheGpuBusyAndOtherKernelsDoNot) {
  in_context([] {
    const auto function = kernel("spin");
    CUevent start = nullptr;
    CUevent end = nullptr;
    CUDA(cuEventCreate)(&start, 0);
    CUDA(cuEventCreate)(&end, 0);
    EXPECT_EQ(CUDA(cuEventRecord)(start, nullptr), CUDA_SUCCESS);
    // Long enough that a loaded machine asks before it is over.
    EXPECT_EQ(spin(function, 500'000), CUDA_SUCCESS);
    EXPECT_EQ(CUDA(cuEventRecord)(end, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(CUDA(cuStreamQuery)(nullptr), CUDA_ERROR_NOT_READY);
    float ms = 0;
    EXPECT_EQ(CUDA(cuEventElapsedTime_v2)(&ms, start, end), CUDA_ERROR_NOT_READY);
    EXPECT_EQ(CUDA(cuEventSynchronize)(end), CUDA_SUCCESS);
    EXPECT_EQ(CUDA(cuEventElapsedTime_v2)(&ms, start, end), CUDA_SUCCESS);
    EXPECT_GE(ms, 500);
    EXPECT_EQ(CUDA(cuStreamQuery)(nullptr), CUDA_SUCCESS);
    EXPECT_EQ(spin(kernel("add"), ~std::uint64_t{0}), CUDA_SUCCESS);
    EXPECT_EQ(CUDA(cuCtxSynchronize)(), CUDA_SUCCESS);
    EXPECT_EQ(CUDA(cuLaunchKernel)(function, 0, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr),
              CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(spin(reinterpret_cast<CUfunction>(&ms), 0), CUDA_ERROR_INVALID_HANDLE);
  });
}

TEST_F(CudaSimTest, WorkIsDoneInOrder) {
  in_context([] {
    const auto function = kernel("spin");
    const auto memory = allocate(4);
    int value = 7;
    int seen = 0;
    EXPECT_EQ(spin(function, 20'000), CUDA_SUCCESS);
    EXPECT_EQ(CUDA(cuMemsetD32Async)(memory, 7, 1, CU_STREAM_PER_THREAD), CUDA_SUCCESS);
    EXPECT_EQ(CUDA(cuMemcpyDtoHAsync_v2)(&seen, memory, 4, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(CUDA(cuLaunchHostFunc)(
                  nullptr, [](void* data) { *static_cast<int*>(data) *= 2; }, &seen),
              CUDA_SUCCESS);
    EXPECT_EQ(CUDA(cuStreamSynchronize_ptsz)(nullptr), CUDA_SUCCESS);
    EXPECT_EQ(CUDA(cuCtxSynchronize)(), CUDA_SUCCESS);
    EXPECT_EQ(seen, 2 * value);
  });
}

TEST_F(CudaSimTest, HostFunctionsAndWaitsAreNotTheCallers) {
  in_context([] {
    static std::mutex mutex;
    {
      const std::scoped_lock lock(mutex);  // which the function takes, too
      EXPECT_EQ(CUDA(cuLaunchHostFunc)(
                    nullptr, [](void*) { const std::scoped_lock inner(mutex); }, nullptr),
                CUDA_SUCCESS);
    }
    EXPECT_EQ(CUDA(cuCtxSynchronize)(), CUDA_SUCCESS);
    // Of another GPU, whose work takes long: only the stream waits for it.
    CUcontext here = nullptr;
    EXPECT_EQ(CUDA(cuCtxGetCurrent)(&here), CUDA_SUCCESS);
    use(1);
    CUevent event = nullptr;
    EXPECT_EQ(CUDA(cuEventCreate)(&event, 0), CUDA_SUCCESS);
    EXPECT_EQ(spin(kernel("spin"), 300'000), CUDA_SUCCESS);
    EXPECT_EQ(CUDA(cuEventRecord)(event, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(CUDA(cuCtxSetCurrent)(here), CUDA_SUCCESS);
    EXPECT_EQ(CUDA(cuStreamWaitEvent)(nullptr, event, 0), CUDA_SUCCESS);
    EXPECT_EQ(CUDA(cuStreamQuery)(nullptr), CUDA_ERROR_NOT_READY);
    EXPECT_EQ(CUDA(cuStreamSynchronize)(nullptr), CUDA_SUCCESS);
    EXPECT_EQ(CUDA(cuEventQuery)(event), CUDA_SUCCESS);
  });
}

TEST_F(CudaSimTest, CapturedWorkIsLaunchedAgain) {
  in_context([] {
    const auto function = kernel("spin");
    const auto memory = allocate(4);
    CUstream stream = nullptr;
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    EXPECT_EQ(CUDA(cuStreamCreate)(&stream, 1), CUDA_SUCCESS);
    EXPECT_EQ(CUDA(cuStreamBeginCapture_v2)(nullptr, 0), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    EXPECT_EQ(CUDA(cuStreamBeginCapture_v2)(stream, 0), CUDA_SUCCESS);
    EXPECT_EQ(spin(function, 30'000, stream), CUDA_SUCCESS);
    EXPECT_EQ(CUDA(cuMemsetD32Async)(memory, 5, 1, stream), CUDA_SUCCESS);
    CUdeviceptr scratch = 0;
    EXPECT_EQ(CUDA(cuMemAllocAsync)(&scratch, kMib, stream), CUDA_SUCCESS);
    EXPECT_EQ(CUDA(cuMemFreeAsync)(scratch, stream), CUDA_SUCCESS);
    EXPECT_EQ(CUDA(cuStreamEndCapture)(stream, &graph), CUDA_SUCCESS);
    EXPECT_EQ(CUDA(cuStreamQuery)(stream), CUDA_SUCCESS) << "nothing has been done";
    size_t nodes = 0;
    EXPECT_EQ(CUDA(cuGraphGetNodes)(graph, nullptr, &nodes), CUDA_SUCCESS);
    EXPECT_EQ(nodes, 4U);
    EXPECT_EQ(CUDA(cuGraphInstantiateWithFlags)(&exec, graph, 0), CUDA_SUCCESS);
    for (int launch = 0; launch < 2; ++launch) {
      int value = 0;
      EXPECT_EQ(CUDA(cuMemsetD32_v2)(memory, 0, 1), CUDA_SUCCESS);
      EXPECT_EQ(CUDA(cuGraphLaunch)(exec, stream), CUDA_SUCCESS);
      EXPECT_EQ(CUDA(cuStreamQuery)(stream), CUDA_ERROR_NOT_READY);
      EXPECT_EQ(CUDA(cuStreamSynchronize)(stream), CUDA_SUCCESS);
      EXPECT_EQ(CUDA(cuMemcpyDtoH_v2)(&value, memory, 4), CUDA_SUCCESS);
      EXPECT_EQ(value, 5);
    }
  });
}

TEST_F(CudaSimTest, GlobalsOfModulesTakeMemory) {
  in_context([] {
    const auto before = free_mib();
    CUmodule module = nullptr;
    CUdeviceptr address = 0;
    size_t size = 0;
    EXPECT_EQ(CUDA(cuModuleLoadData)(&module, ".version 7.0 .global .b8 big[67108864];"), CUDA_SUCCESS);
    EXPECT_EQ(CUDA(cuModuleGetGlobal_v2)(&address, &size, module, "big"), CUDA_SUCCESS);
    EXPECT_EQ(size, 64 * kMib);
    EXPECT_EQ(free_mib(), before - 64);
    EXPECT_EQ(CUDA(cuMemsetD8_v2)(address, 1, size), CUDA_SUCCESS);
    EXPECT_EQ(CUDA(cuModuleUnload)(module), CUDA_SUCCESS);
    EXPECT_EQ(free_mib(), before);
    EXPECT_EQ(CUDA(cuModuleLoadData)(&module, ".version 7.0 .global .b8 big[99999999999];"),
              CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(CUDA(cuModuleLoad)(&module, "/nonexistent"), CUDA_ERROR_FILE_NOT_FOUND);
    CUlibrary library = nullptr;
    CUkernel function = nullptr;
    EXPECT_EQ(CUDA(cuLibraryLoadData)(&library, ".version 7.0 .entry spin(){}", nullptr, nullptr, 0, nullptr,
                                      nullptr, 0),
              CUDA_SUCCESS);
    EXPECT_EQ(CUDA(cuLibraryGetKernel)(&function, library, "spin"), CUDA_SUCCESS);
    EXPECT_EQ(spin(reinterpret_cast<CUfunction>(function), 0), CUDA_SUCCESS);
  });
}

TEST_F(CudaSimTest, AChildOfForkHasNoCuda) {
  in_context([] {
    const auto address = allocate(8);
    in_process([&] {
      int count = 0;
      EXPECT_EQ(CUDA(cuDeviceGetCount)(&count), CUDA_ERROR_NOT_INITIALIZED);
      EXPECT_EQ(CUDA(cuInit)(0), CUDA_ERROR_NOT_INITIALIZED);
      EXPECT_EQ(CUDA(cuMemFree_v2)(address), CUDA_ERROR_NOT_INITIALIZED);
    });
    EXPECT_EQ(CUDA(cuMemFree_v2)(address), CUDA_SUCCESS);
    EXPECT_EQ(free_mib(), kTotalMib - kContextMib);
  });
}

TEST_F(CudaSimTest, FaultsAreSeen) {
  std::ofstream(folder_ / "faults.yaml")
      << "{0: {processes: [{pid: 1, memory_mib: 1000}]}, 1: {absent: true}}";
  in_context([&] {
    int count = 0;
    EXPECT_EQ(CUDA(cuDeviceGetCount)(&count), CUDA_SUCCESS);
    EXPECT_EQ(count, 7);
    EXPECT_EQ(free_mib(), kTotalMib - kContextMib - 1000);
    std::ofstream(folder_ / "new") << "{0: {lost: true}}";
    std::filesystem::rename(folder_ / "new", folder_ / "faults.yaml");
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    CUdeviceptr address = 0;
    EXPECT_EQ(CUDA(cuMemAlloc_v2)(&address, 8), CUDA_ERROR_DEVICE_UNAVAILABLE);
  });
}

TEST_F(CudaSimTest, ThreadsDoAllAtOnce) {
  in_context([] {
    CUcontext context = nullptr;
    EXPECT_EQ(CUDA(cuCtxGetCurrent)(&context), CUDA_SUCCESS);
    const auto function = kernel("spin");
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i)
      threads.emplace_back([&, i] {
        EXPECT_EQ(CUDA(cuCtxSetCurrent)(context), CUDA_SUCCESS);
        for (int round = 0; round < 200; ++round) {
          const auto address = allocate(static_cast<size_t>(1 + round * 20'000));
          int value = 0;
          EXPECT_EQ(CUDA(cuMemsetD8_v2)(address, static_cast<unsigned char>(i), 1), CUDA_SUCCESS);
          EXPECT_EQ(spin(function, round % 50 == 0 ? 100 : 0, CU_STREAM_PER_THREAD), CUDA_SUCCESS);
          EXPECT_EQ(CUDA(cuMemcpyDtoH_v2)(&value, address, 1), CUDA_SUCCESS);
          EXPECT_EQ(value, i);
          EXPECT_EQ(CUDA(cuMemFree_v2)(address), CUDA_SUCCESS);
        }
      });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(free_mib(), kTotalMib - kContextMib);
  });
}

TEST_F(CudaSimTest, WithoutALiveFileAProcessIsAlone) {
  ::setenv("DROVER_SIM_LIVE", "/nonexistent/live", 1);
  in_context([] {
    allocate(100 * kMib);
    EXPECT_EQ(free_mib(), kTotalMib - kContextMib - 100);
  });
}

}  // namespace
}  // namespace drover::sim

// What one program in a container can get and see.

#include <sched.h>
#include <sys/mount.h>

#include <atomic>

#include "guard/testing/container.h"

namespace drover::guard {
namespace {

class GuardTest : public Container {};

TEST_F(GuardTest, AShareIsWhatProgramsSee) {
  limit({{0, 8 * kGib}});
  run_cuda([&](Client& client) {
    std::size_t free = 0, total = 0;
    ASSERT_EQ(CALL(client.cuda, cuMemGetInfo_v2)(&free, &total), CUDA_SUCCESS);
    EXPECT_EQ(total, 8 * kGib);
    EXPECT_EQ(free, 8 * kGib - kContext);
    ASSERT_EQ(CALL(client.cuda, cuDeviceTotalMem_v2)(&total, client.device), CUDA_SUCCESS);
    EXPECT_EQ(total, 8 * kGib);

    ASSERT_EQ(client.allocate(kGib), CUDA_SUCCESS);
    EXPECT_EQ(client.free_bytes(), 7 * kGib - kContext);
    nvmlDevice_t gpu = nullptr;
    ASSERT_EQ(CALL(client.nvml, nvmlInit_v2)(), NVML_SUCCESS);
    ASSERT_EQ(CALL(client.nvml, nvmlDeviceGetHandleByIndex_v2)(0, &gpu), NVML_SUCCESS);
    nvmlMemory_t memory{};
    ASSERT_EQ(CALL(client.nvml, nvmlDeviceGetMemoryInfo)(gpu, &memory), NVML_SUCCESS);
    EXPECT_EQ(memory.total, 8 * kGib);
    EXPECT_EQ(memory.used, kGib + kContext);
    EXPECT_EQ(memory.free, 7 * kGib - kContext);
    nvmlMemory_v2_t second{};
    second.version = NVML_STRUCT_VERSION(Memory, 2);
    ASSERT_EQ(CALL(client.nvml, nvmlDeviceGetMemoryInfo_v2)(gpu, &second), NVML_SUCCESS);
    EXPECT_EQ(second.total, 8 * kGib);
    EXPECT_EQ(second.used + second.free, 8 * kGib);
    EXPECT_EQ(second.reserved, 0U);
  });
}

TEST_F(GuardTest, OtherGpusAreTheDriversOwn) {
  limit({{1, kGib}});
  run_cuda([&](Client& client) {
    std::size_t total = 0;
    ASSERT_EQ(CALL(client.cuda, cuDeviceTotalMem_v2)(&total, 0), CUDA_SUCCESS);
    EXPECT_GT(total, 70 * kGib);
    EXPECT_EQ(client.allocate(9 * kGib), CUDA_SUCCESS);
    ASSERT_EQ(CALL(client.cuda, cuDeviceTotalMem_v2)(&total, 1), CUDA_SUCCESS);
    EXPECT_EQ(total, kGib);
  });
}

TEST_F(GuardTest, LimitsAreOfGpusAndNotOfPlacesInAList) {
  limit({{0, kGib}, {1, 2 * kGib}});
  ::setenv("CUDA_VISIBLE_DEVICES", "1,0", 1);
  run([&](Client& client) {
    std::size_t total = 0;
    ASSERT_EQ(CALL(client.cuda, cuInit)(0), CUDA_SUCCESS);
    ASSERT_EQ(CALL(client.cuda, cuDeviceTotalMem_v2)(&total, 0), CUDA_SUCCESS);
    EXPECT_EQ(total, 2 * kGib);
    ASSERT_EQ(CALL(client.cuda, cuDeviceTotalMem_v2)(&total, 1), CUDA_SUCCESS);
    EXPECT_EQ(total, kGib);
  });
  ::unsetenv("CUDA_VISIBLE_DEVICES");
}

// ---- What other guards let through ----

// The driver opens a block for the first piece of each size.
TEST_F(GuardTest, SmallPiecesTakeNoMoreBlocksThanTheyCount) {
  limit({{0, kGib}});
  run_cuda([](Client& client) {
    std::vector<CUdeviceptr> large(1);
    while (client.allocate(kPiece, &large.back()) == CUDA_SUCCESS) large.push_back(0);
    large.pop_back();
    for (int round = 0; round < 4; ++round) {
      ASSERT_EQ(client.free(large.back()), CUDA_SUCCESS);
      large.pop_back();
    }
    int given = 0;
    for (std::size_t size = 512; size <= kMib; size *= 2) {
      given += client.allocate(size) == CUDA_SUCCESS;
      ASSERT_LE(client.given(), kGib);
    }
    EXPECT_EQ(given, 4);
  });
}

TEST_F(GuardTest, PhysicalMemoryCountsUntilItsLastReferenceIsGone) {
  limit({{0, kGib}});
  run_cuda([](Client& client) {
    const auto prop = on_device();
    CUmemGenericAllocationHandle handle = 0, again = 0;
    CUdeviceptr address = 0;
    ASSERT_EQ(CALL(client.cuda, cuMemCreate)(&handle, 512 * kMib, &prop, 0), CUDA_SUCCESS);
    ASSERT_EQ(CALL(client.cuda, cuMemAddressReserve)(&address, 512 * kMib, 0, 0, 0), CUDA_SUCCESS);
    ASSERT_EQ(CALL(client.cuda, cuMemMap)(address, 512 * kMib, 0, handle, 0), CUDA_SUCCESS);
    ASSERT_EQ(CALL(client.cuda, cuMemRelease)(handle), CUDA_SUCCESS);
    EXPECT_EQ(client.allocate(512 * kMib), CUDA_ERROR_OUT_OF_MEMORY);
    ASSERT_EQ(
        CALL(client.cuda, cuMemRetainAllocationHandle)(
            &again, reinterpret_cast<void*>(address + 100 * kMib)),  // NOLINT(performance-no-int-to-ptr)
        CUDA_SUCCESS);
    ASSERT_EQ(CALL(client.cuda, cuMemUnmap)(address, 512 * kMib), CUDA_SUCCESS);
    EXPECT_EQ(client.allocate(512 * kMib), CUDA_ERROR_OUT_OF_MEMORY);
    ASSERT_EQ(CALL(client.cuda, cuMemRelease)(again), CUDA_SUCCESS);
    EXPECT_EQ(client.free_bytes(), kGib - kContext);
    EXPECT_EQ(client.allocate(512 * kMib), CUDA_SUCCESS);
  });
}

TEST_F(GuardTest, TooMuchIsRefusedWithTheDriversOwnError) {
  limit({{0, 8 * kGib}});
  run_cuda([](Client& client) {
    CUdeviceptr address = 0;
    CUarray array = nullptr;
    CUmodule module = nullptr;
    constexpr auto kRefused = CUDA_ERROR_OUT_OF_MEMORY;
    EXPECT_EQ(client.allocate(9 * kGib), kRefused);
    EXPECT_EQ(client.allocate(SIZE_MAX), kRefused);
    EXPECT_EQ(CALL(client.cuda, cuMemAllocAsync)(&address, 9 * kGib, nullptr), kRefused);
    EXPECT_EQ(CALL(client.cuda, cuMemAllocAsync_ptsz)(&address, 40 * kGib, nullptr), kRefused);
    CUmemoryPool pool = nullptr;
    ASSERT_EQ(CALL(client.cuda, cuDeviceGetDefaultMemPool)(&pool, 0), CUDA_SUCCESS);
    EXPECT_EQ(CALL(client.cuda, cuMemAllocFromPoolAsync)(&address, 40 * kGib, pool, nullptr), kRefused);
    const CUDA_ARRAY3D_DESCRIPTOR huge{16384, 16384, 512, 0x20, 1, 0};
    EXPECT_EQ(CALL(client.cuda, cuArray3DCreate_v2)(&array, &huge), kRefused);
    EXPECT_EQ(CALL(client.cuda, cuCtxSetLimit)(CU_LIMIT_MALLOC_HEAP_SIZE, 20 * kGib), kRefused);
    EXPECT_EQ(CALL(client.cuda, cuModuleLoadData)(&module, module_of(12 * kGib).c_str()), kRefused);
    EXPECT_EQ(client.given(), kContext);
    EXPECT_EQ(client.free_bytes(), 8 * kGib - kContext);
    EXPECT_EQ(client.allocate(7 * kGib), CUDA_SUCCESS);
    // What is not allowed at all is the driver's to say.
    EXPECT_EQ(client.allocate(0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(CALL(client.cuda, cuMemFree_v2)(0x1234), CUDA_ERROR_INVALID_VALUE);
  });
}

TEST_F(GuardTest, TheEnvironmentLetsNobodyOff) {
  limit({{0, 8 * kGib}});
  run([&](Client&) {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", "/usr/local", "tmpfs", 0, nullptr) != 0)
      ::_exit(0);  // only root can show it
    std::filesystem::create_directories("/usr/local/nvidia/share");
    limit({{0, kGib}});
    std::filesystem::copy(folder_ / "limits", GUARD_LIMITS_PATH);
    std::filesystem::copy(folder_ / "account", GUARD_ACCOUNT_PATH);
    limit({{0, 70 * kGib}});
    Client client(folder_);
    client.start();
    EXPECT_EQ(client.allocate(9 * kGib), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(client.free_bytes(), kGib - kContext);
  });
}

TEST_F(GuardTest, TheToolkitsVariableMakesAShareSmallerAndNeverLarger) {
  limit({{0, 8 * kGib}});
  const std::map<std::string, std::uint64_t> totals = {{"2048", 2 * kGib},
                                                       {"8192", 8 * kGib},
                                                       {"9000", 8 * kGib},
                                                       {"0", 8 * kGib},
                                                       {"-1", 8 * kGib},
                                                       {"", 8 * kGib},
                                                       {"2Gi", 8 * kGib},
                                                       {" 1", 8 * kGib},
                                                       {"1e3", 8 * kGib},
                                                       {"17592186044416", 8 * kGib},
                                                       {"99999999999999999999", 8 * kGib}};
  for (const auto& [mib, most] : totals) {
    SCOPED_TRACE(mib);
    ::setenv("NVIDIA_GPU_MEMORY_LIMIT", mib.c_str(), 1);
    run_cuda([&](Client& client) {
      std::size_t total = 0;
      EXPECT_EQ(CALL(client.cuda, cuDeviceTotalMem_v2)(&total, client.device), CUDA_SUCCESS);
      EXPECT_EQ(total, most);
      EXPECT_EQ(client.allocate(most), CUDA_ERROR_OUT_OF_MEMORY);
      EXPECT_EQ(client.allocate(most - kContext), CUDA_SUCCESS);
    });
  }
  ::unsetenv("NVIDIA_GPU_MEMORY_LIMIT");
}

TEST_F(GuardTest, ACapturedAllocationOnlyMakesANode) {
  limit({{0, kGib}});
  run_cuda([](Client& client) {
    CUstream stream = nullptr;
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    CUdeviceptr address = 0;
    ASSERT_EQ(CALL(client.cuda, cuStreamCreate)(&stream, 1), CUDA_SUCCESS);
    ASSERT_EQ(CALL(client.cuda, cuStreamBeginCapture_v2)(stream, 0), CUDA_SUCCESS);
    ASSERT_EQ(CALL(client.cuda, cuMemAllocAsync)(&address, 800 * kMib, stream), CUDA_SUCCESS);
    ASSERT_EQ(CALL(client.cuda, cuMemFreeAsync)(address, stream), CUDA_SUCCESS);
    ASSERT_EQ(CALL(client.cuda, cuStreamEndCapture)(stream, &graph), CUDA_SUCCESS);
    EXPECT_EQ(client.free_bytes(), kGib - kContext);
    EXPECT_EQ(CALL(client.cuda, cuGraphInstantiateWithFlags)(&exec, graph, 0), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_LE(client.given(), kGib);
  });
}

TEST_F(GuardTest, WhatIsFreedCanBeHadAgainAtOnce) {
  limit({{0, kGib}});
  run_cuda([](Client& client) {
    CUdeviceptr address = 0;
    // More than the share in all, by each road, and by small pieces.
    for (int round = 0; round < 20; ++round) {
      ASSERT_EQ(client.allocate(600 * kMib, &address), CUDA_SUCCESS);
      ASSERT_EQ(client.free(address), CUDA_SUCCESS);
      ASSERT_EQ(CALL(client.cuda, cuMemAllocAsync)(&address, 600 * kMib, nullptr), CUDA_SUCCESS);
      ASSERT_EQ(CALL(client.cuda, cuMemFreeAsync)(address, nullptr), CUDA_SUCCESS);
      ASSERT_EQ(CALL(client.cuda, cuCtxSynchronize)(), CUDA_SUCCESS);
      CUarray array = nullptr;
      const CUDA_ARRAY_DESCRIPTOR descriptor{16384, 8192, 0x20, 1};  // 512 MiB
      ASSERT_EQ(CALL(client.cuda, cuArrayCreate_v2)(&array, &descriptor), CUDA_SUCCESS);
      ASSERT_EQ(CALL(client.cuda, cuArrayDestroy)(array), CUDA_SUCCESS);
      std::vector<CUdeviceptr> small(1000);
      for (auto& piece : small) ASSERT_EQ(client.allocate(4096, &piece), CUDA_SUCCESS);
      for (const auto piece : small) ASSERT_EQ(client.free(piece), CUDA_SUCCESS);
    }
    ASSERT_EQ(CALL(client.cuda, cuCtxDestroy_v2)(client.context), CUDA_SUCCESS);
    client.context = nullptr;
    ASSERT_EQ(CALL(client.cuda, cuCtxCreate_v2)(&client.context, 0, 0), CUDA_SUCCESS);
    EXPECT_EQ(client.given(), kContext);
    EXPECT_EQ(client.free_bytes(), kGib - kContext);
  });
}

TEST_F(GuardTest, AContextThatDoesNotFitIsNotMade) {
  limit({{0, 512 * kMib}});
  run_cuda([](Client& client) {
    CUcontext second = nullptr;
    EXPECT_EQ(CALL(client.cuda, cuCtxCreate_v2)(&second, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(CALL(client.cuda, cuDevicePrimaryCtxRetain)(&second, 0), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(client.given(), kContext);
    EXPECT_EQ(client.allocate(128 * kMib), CUDA_SUCCESS);
  });
}

// ---- Whatever the pages say ----

TEST_F(GuardTest, WithoutLimitsEverythingIsTheDriversOwn) {
  run_cuda([](Client& client) {
    std::size_t total = 0;
    ASSERT_EQ(CALL(client.cuda, cuDeviceTotalMem_v2)(&total, 0), CUDA_SUCCESS);
    EXPECT_GT(total, 70 * kGib);
    EXPECT_EQ(client.allocate(20 * kGib), CUDA_SUCCESS);
  });
}

TEST_F(GuardTest, LimitsThatNobodyCanReadRefuseAll) {
  for (const auto& page : {std::string(), std::string("garbage"), std::string(1 << 16, '\xff')}) {
    fill(folder_ / "limits", page);
    run([](Client& client) {
      CUcontext context = nullptr;
      ASSERT_EQ(CALL(client.cuda, cuInit)(0), CUDA_SUCCESS);
      EXPECT_EQ(CALL(client.cuda, cuCtxCreate_v2)(&context, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
      EXPECT_EQ(client.given(), 0U);
    });
  }
  limit({{0, kGib}});
  std::filesystem::remove(folder_ / "account");
  run([](Client& client) {
    CUcontext context = nullptr;
    ASSERT_EQ(CALL(client.cuda, cuInit)(0), CUDA_SUCCESS);
    EXPECT_EQ(CALL(client.cuda, cuCtxCreate_v2)(&context, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
  });
}

TEST_F(GuardTest, AnAccountOfAnyContentHoldsTheLimit) {
  limit({{0, kGib}});
  std::memset(account_, 0xff, sizeof *account_);  // dead slots that say what they like
  run([](Client& client) {
    client.start();
    EXPECT_EQ(client.allocate(600 * kMib), CUDA_SUCCESS);
    EXPECT_EQ(client.allocate(600 * kMib), CUDA_ERROR_OUT_OF_MEMORY);
  });
}

TEST_F(GuardTest, ALimitMayChangeWhileAProgramRuns) {
  limit({{0, kGib}});
  run_cuda([&](Client& client) {
    ASSERT_EQ(client.allocate(500 * kMib), CUDA_SUCCESS);
    std::fstream page(folder_ / "limits", std::ios::in | std::ios::out | std::ios::binary);
    const auto write = [&](std::uint64_t bytes) {
      page.seekp(offsetof(guard_limits, gpus) + offsetof(guard_limit, bytes));
      page.write(reinterpret_cast<const char*>(&bytes), sizeof bytes).flush();
    };
    write(512 * kMib);  // less than it holds
    EXPECT_EQ(client.free_bytes(), 0U);
    EXPECT_EQ(client.allocate(kPiece), CUDA_ERROR_OUT_OF_MEMORY);
    write(4 * kGib);
    EXPECT_EQ(client.free_bytes(), 4 * kGib - kContext - 500 * kMib);
    EXPECT_EQ(client.allocate(3 * kGib), CUDA_SUCCESS);
  });
}

TEST_F(GuardTest, WithoutNvmlAProcessGoesByItsOwnSums) {
  std::filesystem::remove(folder_ / "libnvidia-ml.so.1");
  std::filesystem::rename(folder_ / "libdrover-driver-ml.so.1", folder_ / "elsewhere.so.1");
  limit({{0, kGib}});
  const auto child = ::fork();
  if (child == 0) {
    const Functions cuda(folder_ / "libcuda.so.1");
    CUcontext context = nullptr;
    CUdeviceptr address = 0;
    EXPECT_EQ(CALL(cuda, cuInit)(0), CUDA_SUCCESS);
    EXPECT_EQ(CALL(cuda, cuCtxCreate_v2)(&context, 0, 0), CUDA_SUCCESS);
    std::vector<CUdeviceptr> small;
    while (CALL(cuda, cuMemAlloc_v2)(&address, 4096) == CUDA_SUCCESS && small.size() < 10'000)
      small.push_back(address);
    EXPECT_EQ(small.size(), kGib / kPiece);  // each may be alone in a block
    for (const auto piece : small) EXPECT_EQ(CALL(cuda, cuMemFree_v2)(piece), CUDA_SUCCESS);
    EXPECT_EQ(CALL(cuda, cuMemAlloc_v2)(&address, kGib), CUDA_SUCCESS);
    ::_exit(HasFailure() ? 1 : 0);
  }
  finish(child);
}

// As where the driver numbers processes otherwise: what nobody asked for is then what the card's whole figure
// grew by.
TEST_F(GuardTest, WhereNvmlListsNobodyTheCardsFigureStandsIn) {
  fill(folder_ / "faults", "gpus:\n  - {index: 0, fail: {nvmlDeviceGetComputeRunningProcesses: 3}}\n");
  limit({{0, kGib}});
  run_cuda([](Client& client) {
    EXPECT_EQ(client.free_bytes(), kGib - kContext);
    CUmodule module = nullptr;
    CUdeviceptr address = 0;
    for (int round = 0; round < 10; ++round) {
      ASSERT_EQ(CALL(client.cuda, cuModuleLoadData)(&module, module_of(512 * kMib).c_str()), CUDA_SUCCESS);
      EXPECT_LE(client.free_bytes(), kGib - kContext - 512 * kMib);
      EXPECT_EQ(client.allocate(400 * kMib), CUDA_ERROR_OUT_OF_MEMORY);
      ASSERT_EQ(CALL(client.cuda, cuModuleUnload)(module), CUDA_SUCCESS);
      for (int i = 0; i < 200; ++i) {
        ASSERT_EQ(client.allocate(4096, &address), CUDA_SUCCESS);
        ASSERT_EQ(client.free(address), CUDA_SUCCESS);
      }
    }
    EXPECT_EQ(CALL(client.cuda, cuModuleLoadData)(&module, module_of(800 * kMib).c_str()),
              CUDA_ERROR_OUT_OF_MEMORY);
    ASSERT_EQ(client.allocate(600 * kMib), CUDA_SUCCESS);
    EXPECT_EQ(client.allocate(200 * kMib), CUDA_ERROR_OUT_OF_MEMORY);
  });
}

// ---- Processes ----

TEST_F(GuardTest, AChildThatWasForkedHasASlotOfItsOwn) {
  limit({{0, 2 * kGib}});
  run_cuda([&](Client& client) {
    CUdeviceptr address = 0;
    ASSERT_EQ(client.allocate(512 * kMib, &address), CUDA_SUCCESS);
    const auto before = client.free_bytes();
    finish(start([&](Client&) {
      EXPECT_EQ(client.allocate(kPiece), CUDA_ERROR_NOT_INITIALIZED);  // as the driver has it
      EXPECT_NE(client.free(address), CUDA_SUCCESS);
    }));
    EXPECT_EQ(client.free_bytes(), before);
    ASSERT_EQ(client.free(address), CUDA_SUCCESS);
    EXPECT_EQ(client.free_bytes(), before + 512 * kMib);
  });
}

TEST_F(GuardTest, MemoryOfAnotherProcessCountsForWhoeverOpensIt) {
  limit({{0, 2 * kGib}});
  struct Shared {
    CUipcMemHandle handle;
    std::atomic<int> step;
  };
  auto& shared_by_both = *shared<Shared>();
  const auto owner = start([&](Client& client) {
    client.start();
    CUdeviceptr address = 0;
    EXPECT_EQ(client.allocate(512 * kMib, &address), CUDA_SUCCESS);
    EXPECT_EQ(CALL(client.cuda, cuIpcGetMemHandle)(&shared_by_both.handle, address), CUDA_SUCCESS);
    shared_by_both.step = 1;
    while (shared_by_both.step == 1) ::sched_yield();
  });
  while (shared_by_both.step == 0) ::sched_yield();
  run_cuda([&](Client& client) {
    CUdeviceptr opened = 0, own = 0;
    const auto open = [&] {
      return CALL(client.cuda, cuIpcOpenMemHandle_v2)(&opened, shared_by_both.handle, 1);
    };
    EXPECT_EQ(client.free_bytes(), 2 * kGib - 2 * kContext - 512 * kMib);
    ASSERT_EQ(open(), CUDA_SUCCESS);
    EXPECT_EQ(client.free_bytes(), 2 * kGib - 2 * kContext - 1024 * kMib);
    EXPECT_EQ(client.allocate(512 * kMib), CUDA_ERROR_OUT_OF_MEMORY);
    ASSERT_EQ(CALL(client.cuda, cuIpcCloseMemHandle)(opened), CUDA_SUCCESS);
    ASSERT_EQ(client.allocate(512 * kMib, &own), CUDA_SUCCESS);
    EXPECT_EQ(open(), CUDA_ERROR_OUT_OF_MEMORY);
    ASSERT_EQ(client.free(own), CUDA_SUCCESS);
    EXPECT_EQ(open(), CUDA_SUCCESS);
  });
  shared_by_both.step = 2;
  finish(owner);
  ::munmap(&shared_by_both, sizeof shared_by_both);
}

TEST_F(GuardTest, AProcessSeesItsContainersProcessesAlone) {
  limit({{0, 2 * kGib}});
  fill(folder_ / "faults", "gpus:\n  - {index: 0, processes: [{pid: 4242, memory_mib: 1000}]}\n");
  run_cuda([&](Client& client) {
    std::vector<nvmlProcessInfo_t> processes(16);
    unsigned int count = 16;
    nvmlDevice_t gpu = nullptr;
    ASSERT_EQ(CALL(client.nvml, nvmlInit_v2)(), NVML_SUCCESS);
    ASSERT_EQ(CALL(client.nvml, nvmlDeviceGetHandleByIndex_v2)(0, &gpu), NVML_SUCCESS);
    ASSERT_EQ(CALL(client.nvml, nvmlDeviceGetComputeRunningProcesses_v3)(gpu, &count, processes.data()),
              NVML_SUCCESS);
    ASSERT_EQ(count, 1U);
    EXPECT_EQ(processes[0].pid, static_cast<unsigned int>(::getpid()));
    EXPECT_EQ(processes[0].usedGpuMemory, kContext);
    count = 0;
    EXPECT_EQ(CALL(client.nvml, nvmlDeviceGetComputeRunningProcesses_v3)(gpu, &count, nullptr),
              NVML_ERROR_INSUFFICIENT_SIZE);
    EXPECT_EQ(count, 1U);
    ASSERT_EQ(CALL(client.nvml, nvmlDeviceGetHandleByIndex_v2)(1, &gpu), NVML_SUCCESS);
    count = 16;
    EXPECT_EQ(CALL(client.nvml, nvmlDeviceGetComputeRunningProcesses_v3)(gpu, &count, processes.data()),
              NVML_SUCCESS);
    EXPECT_EQ(count, 0U);
  });
}

}  // namespace
}  // namespace drover::guard

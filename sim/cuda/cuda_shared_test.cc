// The built library, as several processes of one machine see it.

#include <gmock/gmock.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <numeric>
#include <optional>
#include <thread>
#include <vector>

#include "sim/live.h"
#include "sim/testing/cuda_client.h"
#include "sim/testing/shipped.h"

namespace drover::sim {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto kPatience = 60s;

class CudaSharedTest : public CudaTest {
 protected:
  /// What processes say to each other: a file a word.
  void say(const std::string& word) const { std::ofstream(folder_ / word); }
  void hear(const std::string& word) const {
    const auto deadline = Clock::now() + kPatience;
    while (!std::filesystem::exists(folder_ / word)) {
      if (Clock::now() > deadline) throw std::runtime_error("nobody said " + word);
      std::this_thread::sleep_for(1ms);
    }
  }
  /// What processes hold of GPU 0, in MiB.
  std::vector<std::uint64_t> held() const {
    std::vector<std::uint64_t> held;
    for (const auto& use : uses()) held.push_back(use.bytes / kMib);
    return held;
  }

  std::vector<LiveUse> uses() const {
    const auto all = reader_.current();
    return all[0];
  }

  const Profile profile_ = shipped("dgx-h100");
  const LiveReader reader_{folder_ / "live", profile_};
};

/// Launches kernels of a millisecond for so long, waiting for each; how many ended.
int spin_for(Clock::duration duration, CUfunction function,
             CUresult (*spin)(CUfunction, std::uint64_t, CUstream)) {
  int ended = 0;
  for (const auto end = Clock::now() + duration; Clock::now() < end; ++ended) {
    EXPECT_EQ(spin(function, 1000, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(CUDA(cuCtxSynchronize)(), CUDA_SUCCESS);
  }
  return ended;
}

TEST_F(CudaSharedTest, MemoryIsSharedAndSeen) {
  ClientProcess other([&] {
    use();
    allocate(1000 * kMib);
    say("ready");
    hear("done");
  });
  hear("ready");
  in_context([&] {
    EXPECT_EQ(free_mib(), kTotalMib - 2 * kContextMib - 1000);
    allocate(500 * kMib);
    EXPECT_THAT(held(), testing::UnorderedElementsAre(1000 + kContextMib, 500 + kContextMib));
  });
  EXPECT_THAT(held(), testing::ElementsAre(1000 + kContextMib));
  say("done");
  EXPECT_TRUE(other.wait());
  EXPECT_THAT(held(), testing::IsEmpty());
}

TEST_F(CudaSharedTest, RacersNeverHoldMoreThanTheCardHas) {
  std::vector<std::unique_ptr<ClientProcess>> racers;
  for (int i = 0; i < 4; ++i)
    racers.push_back(std::make_unique<ClientProcess>([&] {
      use();
      for (int round = 0; round < 5; ++round) {
        std::vector<CUdeviceptr> pieces;
        CUdeviceptr piece = 0;
        CUresult result = CUDA_SUCCESS;
        while ((result = CUDA(cuMemAlloc_v2)(&piece, 256 * kMib)) == CUDA_SUCCESS) {
          pieces.push_back(piece);
          const auto all = held();
          EXPECT_LE(std::accumulate(all.begin(), all.end(), std::uint64_t{0}), kTotalMib);
        }
        EXPECT_EQ(result, CUDA_ERROR_OUT_OF_MEMORY);
        for (const auto address : pieces) EXPECT_EQ(CUDA(cuMemFree_v2)(address), CUDA_SUCCESS);
      }
    }));
  for (auto& racer : racers) EXPECT_TRUE(racer->wait());
  EXPECT_THAT(held(), testing::IsEmpty());
}

TEST_F(CudaSharedTest, AKilledProcessGivesAllBackAtOnce) {
  for (int round = 0; round < 5; ++round) {
    ClientProcess victim([&] {
      use();
      allocate(70'000 * kMib);
      say("ready" + std::to_string(round));
      while (true) allocate(512);
    });
    hear("ready" + std::to_string(round));
    in_process([] {
      use();
      CUdeviceptr address = 0;
      EXPECT_EQ(CUDA(cuMemAlloc_v2)(&address, 70'000 * kMib), CUDA_ERROR_OUT_OF_MEMORY);
    });
    victim.kill();
    EXPECT_THAT(held(), testing::IsEmpty());
    in_context([] { allocate(80'000 * kMib); });
  }
}

TEST_F(CudaSharedTest, ProcessesShareTheGpuEvenly) {
  std::vector<std::unique_ptr<ClientProcess>> spinners;
  for (const char* name : {"a", "b"})
    spinners.push_back(std::make_unique<ClientProcess>([&, name] {
      use();
      const auto function = kernel("spin");
      say(std::string("ready-") + name);
      hear("go");
      // As much as the other has waiting, so that both always want the GPU.
      for (int i = 0; i < 2000; ++i) EXPECT_EQ(spin(function, 1000, nullptr), CUDA_SUCCESS);
      std::this_thread::sleep_for(1500ms);
      double busy = 0;
      for (const auto& use : uses())
        if (use.pid == static_cast<unsigned int>(::getpid())) busy = use.busy;
      std::ofstream(folder_ / (std::string("busy-") + name)) << busy;
      hear("end");
    }));
  hear("ready-a");
  hear("ready-b");
  const auto begin = Clock::now();
  say("go");
  double busy[2] = {};
  for (const int i : {0, 1}) {
    const auto file = folder_ / (i == 0 ? "busy-a" : "busy-b");
    hear(file.filename());
    std::this_thread::sleep_for(50ms);
    std::ifstream(file) >> busy[i];
  }
  say("end");
  for (auto& spinner : spinners) EXPECT_TRUE(spinner->wait());
  if (Clock::now() - begin > 4s) GTEST_SKIP() << "the machine is too busy to say who was";
  EXPECT_GT(busy[0], 0.5 * busy[1]);
  EXPECT_GT(busy[1], 0.5 * busy[0]);
  EXPECT_GT(busy[0] + busy[1], 0.7) << "nobody else wants it";
  EXPECT_LE(busy[0] + busy[1], 1.1);
}

TEST_F(CudaSharedTest, OneAloneHasAllOfTheGpu) {
  in_context([] {
    const auto function = kernel("spin");
    CUevent start = nullptr;
    CUevent end = nullptr;
    CUDA(cuEventCreate)(&start, 0);
    CUDA(cuEventCreate)(&end, 0);
    EXPECT_EQ(CUDA(cuEventRecord)(start, nullptr), CUDA_SUCCESS);
    for (int i = 0; i < 300; ++i) EXPECT_EQ(spin(function, 1000, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(CUDA(cuEventRecord)(end, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(CUDA(cuCtxSynchronize)(), CUDA_SUCCESS);
    float ms = 0;
    EXPECT_EQ(CUDA(cuEventElapsedTime_v2)(&ms, start, end), CUDA_SUCCESS);
    EXPECT_GE(ms, 300);
    EXPECT_LE(ms, 450) << "turns follow each other, however late this process wakes up";
  });
}

TEST_F(CudaSharedTest, WhoeverHasTheTurnMayBeKilled) {
  for (int round = 0; round < 3; ++round) {
    ClientProcess victim([&] {
      use();
      const auto function = kernel("spin");
      EXPECT_EQ(spin(function, 3'600'000'000, nullptr), CUDA_SUCCESS);
      say("spins" + std::to_string(round));
      ::pause();
    });
    hear("spins" + std::to_string(round));
    ClientProcess survivor([&] {
      use();
      const auto function = kernel("spin");
      say("beside" + std::to_string(round));
      EXPECT_GT(spin_for(200ms, function, spin), 0);
    });
    hear("beside" + std::to_string(round));
    victim.kill();
    EXPECT_TRUE(survivor.wait());
  }
}

TEST_F(CudaSharedTest, MemoryIsExportedToAnotherProcess) {
  ClientProcess exporter([&] {
    use();
    const auto address = allocate(3 * kMib) + 0;
    EXPECT_EQ(CUDA(cuMemsetD8_v2)(address, 42, 3 * kMib), CUDA_SUCCESS);
    CUipcMemHandle handle{};
    EXPECT_EQ(CUDA(cuIpcGetMemHandle)(&handle, address), CUDA_SUCCESS);
    CUdeviceptr own = 0;
    EXPECT_EQ(CUDA(cuIpcOpenMemHandle_v2)(&own, handle, 1), CUDA_ERROR_INVALID_CONTEXT);
    std::ofstream(folder_ / "handle.new").write(handle.reserved, sizeof(handle.reserved));
    std::filesystem::rename(folder_ / "handle.new", folder_ / "handle");
    hear("written");
    unsigned char value = 0;
    EXPECT_EQ(CUDA(cuMemcpyDtoH_v2)(&value, address + 5, 1), CUDA_SUCCESS);
    EXPECT_EQ(value, 7);
  });
  hear("handle");
  in_context([&] {
    CUipcMemHandle handle{};
    std::ifstream(folder_ / "handle").read(handle.reserved, sizeof(handle.reserved));
    const auto before = free_mib();
    CUdeviceptr address = 0;
    EXPECT_EQ(CUDA(cuIpcOpenMemHandle_v2)(&address, handle, 1), CUDA_SUCCESS);
    EXPECT_EQ(free_mib(), before) << "it is the exporter's";
    unsigned char value = 0;
    EXPECT_EQ(CUDA(cuMemcpyDtoH_v2)(&value, address + 3 * kMib - 1, 1), CUDA_SUCCESS);
    EXPECT_EQ(value, 42);
    EXPECT_EQ(CUDA(cuMemsetD8_v2)(address + 5, 7, 1), CUDA_SUCCESS);
    EXPECT_EQ(CUDA(cuMemFree_v2)(address), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(CUDA(cuIpcCloseMemHandle)(address), CUDA_SUCCESS);
    handle.reserved[8] = 99;  // a slot that nobody has
    EXPECT_EQ(CUDA(cuIpcOpenMemHandle_v2)(&address, handle, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(CUDA(cuIpcOpenMemHandle_v2)(&address, {}, 1), CUDA_ERROR_INVALID_VALUE);
  });
  say("written");
  EXPECT_TRUE(exporter.wait());
}

}  // namespace
}  // namespace drover::sim

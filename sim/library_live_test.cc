// What lives on simulated GPUs, as a client of the built library sees it.

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <memory>
#include <random>
#include <vector>

#include "sim/live_process.h"
#include "sim/testing/library_test_base.h"

namespace drover::sim {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr unsigned long long kBytesPerMib = 1 << 20;

class LibraryLiveTest : public LibraryTestBase {
 protected:
  using Listed = std::vector<std::pair<unsigned int, unsigned long long>>;

  /// Pids and bytes, as one revision of the call has them.
  template <typename Info>
  Listed listed(const char* function, nvmlDevice_t handle) const {
    auto* const list =
        reinterpret_cast<nvmlReturn_t (*)(nvmlDevice_t, unsigned int*, Info*)>(symbol(function));
    Info infos[8];
    unsigned int count = 8;
    EXPECT_EQ(list(handle, &count, infos), NVML_SUCCESS);
    Listed found;
    for (unsigned int i = 0; i < count; ++i) found.emplace_back(infos[i].pid, infos[i].usedGpuMemory);
    return found;
  }
  Listed processes(nvmlDevice_t handle) const {
    return listed<nvmlProcessInfo_t>("nvmlDeviceGetComputeRunningProcesses_v3", handle);
  }
  nvmlMemory_t memory(nvmlDevice_t handle) const {
    nvmlMemory_t memory{};
    EXPECT_EQ(NVML(nvmlDeviceGetMemoryInfo)(handle, &memory), NVML_SUCCESS);
    EXPECT_EQ(memory.free + memory.used, memory.total);
    return memory;
  }
  unsigned int percent_busy(nvmlDevice_t handle) const {
    nvmlUtilization_t utilization{};
    EXPECT_EQ(NVML(nvmlDeviceGetUtilizationRates)(handle, &utilization), NVML_SUCCESS);
    return utilization.gpu;
  }
  unsigned int milliwatts(nvmlDevice_t handle) const {
    unsigned int power = 0;
    EXPECT_EQ(NVML(nvmlDeviceGetPowerUsage)(handle, &power), NVML_SUCCESS);
    return power;
  }
  /// This process, as one of those that use simulated CUDA.
  std::unique_ptr<LiveProcess> live() const {
    auto process = LiveProcess::open(live_, 2);
    EXPECT_TRUE(process && process->shared());
    return process;
  }

  const fs::path live_ = folder_ / "live";
};

TEST_F(LibraryLiveTest, EveryRevisionListsWhatLives) {
  start("k80");
  set_faults("{0: {processes: [{pid: 7, memory_mib: 100}]}}");
  const auto process = live();
  ASSERT_TRUE(process->reserve(0, 300 * kBytesPerMib, 1000 * kBytesPerMib));
  const auto self = static_cast<unsigned int>(::getpid());
  const auto both = ElementsAre(Pair(7, 100 * kBytesPerMib), Pair(self, 300 * kBytesPerMib));
  EXPECT_THAT(listed<nvmlProcessInfo_v1_t>("nvmlDeviceGetComputeRunningProcesses", device(0)), both);
  EXPECT_THAT(listed<nvmlProcessInfo_v2_t>("nvmlDeviceGetComputeRunningProcesses_v2", device(0)), both);
  EXPECT_THAT(processes(device(0)), both);
  EXPECT_THAT(processes(device(1)), IsEmpty());
}

TEST_F(LibraryLiveTest, MemoryIsUsedUntilTheProcessEnds) {
  start("k80");
  const auto before = memory(device(1)).used;
  auto process = live();
  ASSERT_TRUE(process->reserve(1, 300 * kBytesPerMib, 1000 * kBytesPerMib));
  EXPECT_EQ(memory(device(1)).used, before + 300 * kBytesPerMib);
  nvmlMemory_v2_t second{};
  second.version = NVML_STRUCT_VERSION(Memory, 2);
  EXPECT_EQ(NVML(nvmlDeviceGetMemoryInfo_v2)(device(1), &second), NVML_SUCCESS);
  EXPECT_EQ(second.used, 300 * kBytesPerMib);
  process->release(1, 100 * kBytesPerMib);
  EXPECT_EQ(memory(device(1)).used, before + 200 * kBytesPerMib);
  process.reset();
  EXPECT_EQ(memory(device(1)).used, before);
}

TEST_F(LibraryLiveTest, ABusyProcessMakesItsGpuBusyUnlessTheFaultFileSaysOtherwise) {
  start("k80");
  const auto idle = milliwatts(device(0));
  const auto process = live();
  ASSERT_TRUE(process->reserve(0, kBytesPerMib, 1000 * kBytesPerMib));
  const auto now = monotonic_ns();
  process->add_busy(0, {now - 800'000'000, now - 400'000'000});
  EXPECT_THAT(percent_busy(device(0)), testing::AllOf(testing::Gt(10U), testing::Lt(60U)));
  EXPECT_EQ(percent_busy(device(1)), 0U);
  EXPECT_GT(milliwatts(device(0)), idle);
  nvmlPstates_t state{};
  EXPECT_EQ(NVML(nvmlDeviceGetPerformanceState)(device(0), &state), NVML_SUCCESS);
  EXPECT_EQ(state, NVML_PSTATE_0);
  nvmlProcessUtilizationSample_t sample{};
  unsigned int count = 1;
  EXPECT_EQ(NVML(nvmlDeviceGetProcessUtilization)(device(0), &sample, &count, 0), NVML_SUCCESS);
  EXPECT_EQ(sample.pid, static_cast<unsigned int>(::getpid()));
  EXPECT_GT(sample.smUtil, 10U);
  set_faults("{0: {utilization: {gpu: 3}}}");
  EXPECT_EQ(percent_busy(device(0)), 3U);
}

TEST_F(LibraryLiveTest, AFileThatSomebodySpoiltHarmsNothing) {
  start("k80");
  const auto quiet = [&](const char* what) {
    EXPECT_THAT(processes(device(0)), IsEmpty()) << what;
    EXPECT_EQ(percent_busy(device(0)), 0U) << what;
    memory(device(0));
  };
  std::ofstream(live_) << "short";
  quiet("short");
  std::ofstream(live_, std::ios::trunc);
  quiet("empty");
  std::mt19937 random(7);
  std::string garbage(sizeof(LiveState), ' ');
  for (auto& byte : garbage) byte = static_cast<char>(random());
  std::ofstream(live_) << garbage;
  quiet("garbage");
  fs::resize_file(live_, 8ULL << 30);
  quiet("long");
  fs::remove(live_);
  ASSERT_EQ(::mkfifo(live_.c_str(), 0666), 0);
  quiet("a FIFO");
  fs::remove(live_);
  fs::create_directory(live_);
  quiet("a folder");
}

TEST_F(LibraryLiveTest, WhatAProcessClaimsIsNeverMoreThanTheCardHas) {
  start("k80");
  const auto process = live();
  LiveState state{};
  state.header = {kLiveMagic, kLiveVersion, {}};
  for (auto& gpu : state.gpus) {
    for (auto& held : gpu.held) held = UINT64_MAX;
    for (auto& buckets : gpu.busy)
      for (auto& bucket : buckets) bucket = UINT64_MAX;
  }
  ASSERT_EQ(::pwrite(live_descriptor(live_, true), &state, sizeof state, 0), ssize_t{sizeof state});
  const auto all = memory(device(0));
  EXPECT_EQ(all.free, 0U);
  for (const auto& [pid, bytes] : processes(device(0))) EXPECT_LE(bytes, all.total);
  EXPECT_LE(percent_busy(device(0)), 100U);
}

}  // namespace
}  // namespace drover::sim

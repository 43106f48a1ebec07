#include <gmock/gmock.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "sim/testing/library_test_base.h"

namespace drover::sim {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

class LibraryTest : public LibraryTestBase {
 protected:
  nvmlEventSet_t events_of(nvmlDevice_t handle) const {
    nvmlEventSet_t set = nullptr;
    EXPECT_EQ(NVML(nvmlEventSetCreate)(&set), NVML_SUCCESS);
    EXPECT_EQ(NVML(nvmlDeviceRegisterEvents)(handle, nvmlEventTypeXidCriticalError, set), NVML_SUCCESS);
    return set;
  }
  /// The XIDs that a set has to tell now.
  std::vector<unsigned long long> drain(nvmlEventSet_t set) const {
    std::vector<unsigned long long> xids;
    nvmlEventData_t event{};
    while (NVML(nvmlEventSetWait_v2)(set, &event, 20) == NVML_SUCCESS) xids.push_back(event.eventData);
    return xids;
  }
};

TEST_F(LibraryTest, NeedsInit) {
  load();
  unsigned int count = 0;
  EXPECT_EQ(NVML(nvmlDeviceGetCount_v2)(&count), NVML_ERROR_UNINITIALIZED);
  EXPECT_EQ(NVML(nvmlShutdown)(), NVML_ERROR_UNINITIALIZED);
}

TEST_F(LibraryTest, InitIsCounted) {
  start("k40m");
  EXPECT_EQ(NVML(nvmlInitWithFlags)(0), NVML_SUCCESS);
  EXPECT_EQ(NVML(nvmlShutdown)(), NVML_SUCCESS);
  unsigned int count = 0;
  EXPECT_EQ(NVML(nvmlDeviceGetCount_v2)(&count), NVML_SUCCESS);
  EXPECT_EQ(count, 1U);
  EXPECT_EQ(NVML(nvmlShutdown)(), NVML_SUCCESS);
  EXPECT_EQ(NVML(nvmlDeviceGetCount_v2)(&count), NVML_ERROR_UNINITIALIZED);
}

TEST_F(LibraryTest, WithoutAProfileThereIsNoDriver) {
  ::setenv("DROVER_SIM_PROFILE", "/nonexistent.yaml", 1);
  load();
  EXPECT_EQ(NVML(nvmlInit_v2)(), NVML_ERROR_DRIVER_NOT_LOADED);
}

TEST_F(LibraryTest, FindsTheProfileBesideItself) {
  fs::create_directories(folder_ / "lib64");
  fs::create_directories(folder_ / "share/drover-sim");
  fs::copy_file(SIM_LIBRARY, folder_ / "lib64/libnvidia-ml.so.1");
  fs::copy_file(fs::path(SIM_PROFILES) / "k80.yaml", folder_ / "share/drover-sim/profile.yaml");
  std::ofstream(folder_ / "nvidia1");
  ::setenv("DROVER_SIM_DEV", folder_.c_str(), 1);
  load(folder_ / "lib64/libnvidia-ml.so.1");
  ASSERT_EQ(NVML(nvmlInit_v2)(), NVML_SUCCESS);
  unsigned int count = 99;
  EXPECT_EQ(NVML(nvmlDeviceGetCount_v2)(&count), NVML_SUCCESS);
  EXPECT_EQ(count, 1U) << "only GPU 1 has a node";
}

TEST_F(LibraryTest, ADriverMayHaveNoGpus) {
  std::ofstream(folder_ / "none.yaml")
      << "{name: none, driver: {version: '535.1', cuda: '12.2'}, models: {}, gpus: [],"
         " host: {cpus: 1, memory_mib: 64, disk_mib: 64, numa: [{node: 0, cpus: '0'}]}}";
  ::setenv("DROVER_SIM_PROFILE", (folder_ / "none.yaml").c_str(), 1);
  load();
  ASSERT_EQ(NVML(nvmlInit_v2)(), NVML_SUCCESS);
  unsigned int count = 99;
  EXPECT_EQ(NVML(nvmlDeviceGetCount_v2)(&count), NVML_SUCCESS);
  EXPECT_EQ(count, 0U);
}

TEST_F(LibraryTest, RefusesWrongArguments) {
  start("k80");
  char text[80];
  nvmlDevice_t handle = nullptr;
  EXPECT_EQ(NVML(nvmlDeviceGetUUID)(device(0), nullptr, 80), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(NVML(nvmlDeviceGetUUID)(nullptr, text, 80), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(NVML(nvmlDeviceGetUUID)(device(0), text, 10), NVML_ERROR_INSUFFICIENT_SIZE);
  EXPECT_EQ(NVML(nvmlDeviceGetHandleByIndex_v2)(2, &handle), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(NVML(nvmlDeviceGetHandleByUUID)("GPU-none", &handle), NVML_ERROR_NOT_FOUND);
  EXPECT_EQ(NVML(nvmlDeviceGetTemperature)(device(0), NVML_TEMPERATURE_GPU, nullptr),
            NVML_ERROR_INVALID_ARGUMENT);
  nvmlMemory_v2_t memory{};
  EXPECT_EQ(NVML(nvmlDeviceGetMemoryInfo_v2)(device(0), &memory), NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
}

TEST_F(LibraryTest, SaysWhatACardDoesNotHave) {
  start("pcie4");
  nvmlEnableState_t current{};
  nvmlEnableState_t pending{};
  unsigned int mode = 0;
  EXPECT_EQ(NVML(nvmlDeviceGetEccMode)(device(0), &current, &pending), NVML_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(NVML(nvmlDeviceGetMigMode)(device(0), &mode, &mode), NVML_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(NVML(nvmlDeviceGetNvLinkState)(device(0), 0, &current), NVML_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(NVML(nvmlDeviceGetNvLinkState)(device(0), NVML_NVLINK_MAX_LINKS, &current),
            NVML_ERROR_INVALID_ARGUMENT);
}

TEST_F(LibraryTest, NvlinksShareTheTrafficOfTheirGpu) {
  start("dgx-a100");
  set_faults("{0: {nvlink: {sent_kib: 125, received_kib: 24}}}");
  const auto traffic = [&](unsigned int field, unsigned int link) {
    nvmlFieldValue_t value{};
    value.fieldId = field;
    value.scopeId = link;
    EXPECT_EQ(NVML(nvmlDeviceGetFieldValues)(device(0), 1, &value), NVML_SUCCESS);
    return value.nvmlReturn == NVML_SUCCESS ? static_cast<int>(value.value.ullVal) : -1;
  };
  int sent = 0;
  for (unsigned int link = 0; link < 12; ++link) {
    sent += traffic(NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, link);
    EXPECT_EQ(traffic(NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, link), 2);
  }
  EXPECT_EQ(sent, traffic(NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, NVML_FI_ALL_LINKS));
  EXPECT_EQ(traffic(NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, 12), -1);
}

TEST_F(LibraryTest, TellsTheFabricThatAProfileHasJoined) {
  std::ifstream shipped(fs::path(SIM_PROFILES) / "dgx-h100.yaml");
  std::string text{std::istreambuf_iterator<char>(shipped), {}};
  const std::string within = "fabric: {clique: 0}";
  ASSERT_NE(text.find(within), std::string::npos);
  text.replace(text.find(within), within.size(),
               "fabric: {cluster: 01020304-0506-0708-090a-0b0c0d0e0fff, clique: 7}");
  std::ofstream(folder_ / "rack.yaml") << text;
  ::setenv("DROVER_SIM_PROFILE", (folder_ / "rack.yaml").c_str(), 1);
  load();
  ASSERT_EQ(NVML(nvmlInit_v2)(), NVML_SUCCESS);
  nvmlGpuFabricInfo_t info{};
  ASSERT_EQ(NVML(nvmlDeviceGetGpuFabricInfo)(device(0), &info), NVML_SUCCESS);
  EXPECT_THAT(info.clusterUuid, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 255));
  EXPECT_EQ(info.cliqueId, 7U);
  EXPECT_EQ(info.state, NVML_GPU_FABRIC_STATE_COMPLETED);
  nvmlGpuFabricInfo_v3_t later{};
  EXPECT_EQ(NVML(nvmlDeviceGetGpuFabricInfoV)(device(0), &later), NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
  for (const auto version : {NVML_STRUCT_VERSION(GpuFabricInfo, 2), NVML_STRUCT_VERSION(GpuFabricInfo, 3)}) {
    later = {};
    later.version = version;
    ASSERT_EQ(NVML(nvmlDeviceGetGpuFabricInfoV)(device(0), &later), NVML_SUCCESS);
    EXPECT_EQ(later.cliqueId, 7U);
  }
}

TEST_F(LibraryTest, ListsSayHowMuchRoomTheyNeed) {
  start("k80");
  set_faults("{0: {processes: [{pid: 7, memory_mib: 100}, {pid: 8, memory_mib: 200}]}}");
  unsigned int count = 0;
  EXPECT_EQ(NVML(nvmlDeviceGetComputeRunningProcesses_v3)(device(0), &count, nullptr),
            NVML_ERROR_INSUFFICIENT_SIZE);
  ASSERT_EQ(count, 2U);
  nvmlProcessInfo_t processes[2];
  EXPECT_EQ(NVML(nvmlDeviceGetComputeRunningProcesses_v3)(device(0), &count, processes), NVML_SUCCESS);
  EXPECT_EQ(processes[1].pid, 8U);
  EXPECT_EQ(processes[1].usedGpuMemory, 200ULL << 20);
  nvmlMemory_t memory{};
  EXPECT_EQ(NVML(nvmlDeviceGetMemoryInfo)(device(0), &memory), NVML_SUCCESS);
  EXPECT_EQ(memory.used, 300ULL << 20);
  EXPECT_EQ(memory.free + memory.used, memory.total);
  EXPECT_EQ(NVML(nvmlDeviceGetComputeRunningProcesses_v3)(device(1), &count, nullptr), NVML_SUCCESS);
  EXPECT_EQ(count, 0U);
}

TEST_F(LibraryTest, FaultsConcernOnlyTheirGpu) {
  start("k80");
  const auto first = device(0);
  const auto second = device(1);
  char serial[NVML_DEVICE_SERIAL_BUFFER_SIZE];
  unsigned int degrees = 0;
  set_faults("{0: {lost: true}, 1: {fail: {nvmlDeviceGetSerial: 999}, temperature: 91}}");
  nvmlDevice_t handle = nullptr;
  EXPECT_EQ(NVML(nvmlDeviceGetSerial)(first, serial, sizeof serial), NVML_ERROR_GPU_IS_LOST);
  EXPECT_EQ(NVML(nvmlDeviceGetHandleByIndex_v2)(0, &handle), NVML_ERROR_GPU_IS_LOST);
  EXPECT_EQ(NVML(nvmlDeviceGetSerial)(second, serial, sizeof serial), NVML_ERROR_UNKNOWN);
  EXPECT_EQ(NVML(nvmlDeviceGetTemperature)(second, NVML_TEMPERATURE_GPU, &degrees), NVML_SUCCESS);
  EXPECT_EQ(degrees, 91U);
  set_faults("{}");
  EXPECT_EQ(NVML(nvmlDeviceGetSerial)(first, serial, sizeof serial), NVML_SUCCESS);
}

TEST_F(LibraryTest, EveryRevisionOfACallFailsUnderItsOwnName) {
  start("k80");
  const auto first = device(0);
  nvmlDevice_t handle = nullptr;
  nvmlPstates_t state{};
  set_faults("{0: {fail: {nvmlDeviceGetHandleByIndex_v2: 999, nvmlDeviceGetPowerState: 3}}}");
  EXPECT_EQ(NVML(nvmlDeviceGetHandleByIndex_v2)(0, &handle), NVML_ERROR_UNKNOWN);
  EXPECT_EQ(NVML(nvmlDeviceGetHandleByIndex)(0, &handle), NVML_SUCCESS);
  EXPECT_EQ(NVML(nvmlDeviceGetPowerState)(first, &state), NVML_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(NVML(nvmlDeviceGetPerformanceState)(first, &state), NVML_SUCCESS);
}

TEST_F(LibraryTest, EccErrorsAndRepairsAreCounted) {
  start("mixed");
  set_faults(
      "{0: {ecc: {volatile: {uncorrected: 2}}, retired_pages: {double_bit: 3}},"
      " 2: {remapped_rows: {uncorrected: 4, pending: true}}}");
  unsigned long long errors = 0;
  EXPECT_EQ(NVML(nvmlDeviceGetTotalEccErrors)(device(0), NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
                                              NVML_VOLATILE_ECC, &errors),
            NVML_SUCCESS);
  EXPECT_EQ(errors, 2U);
  unsigned int pages = 0;
  EXPECT_EQ(NVML(nvmlDeviceGetRetiredPages)(device(0), NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR,
                                            &pages, nullptr),
            NVML_ERROR_INSUFFICIENT_SIZE);
  EXPECT_EQ(pages, 3U);
  unsigned int corrected = 0;
  unsigned int uncorrected = 0;
  unsigned int pending = 0;
  unsigned int failed = 0;
  EXPECT_EQ(NVML(nvmlDeviceGetRemappedRows)(device(2), &corrected, &uncorrected, &pending, &failed),
            NVML_SUCCESS);
  EXPECT_THAT((std::vector{corrected, uncorrected, pending, failed}), ElementsAre(0U, 4U, 1U, 0U));
  EXPECT_EQ(NVML(nvmlDeviceGetRemappedRows)(device(0), &corrected, &uncorrected, &pending, &failed),
            NVML_ERROR_NOT_SUPPORTED);
}

TEST_F(LibraryTest, ASlowGpuIsSlow) {
  start("k80");
  set_faults("{0: {slow_ms: 50}}");
  const auto begin = std::chrono::steady_clock::now();
  device(0);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(50));
}

TEST_F(LibraryTest, ACallEndsWhenItsGpuIsNotSlowAnyMore) {
  start("k80");
  const auto slow = device(1);
  set_faults("{1: {slow_ms: 3600000}}");
  std::thread heals([&] { set_faults("{1: {temperature: 77}}"); });
  unsigned int degrees = 0;
  EXPECT_EQ(NVML(nvmlDeviceGetTemperature)(slow, NVML_TEMPERATURE_GPU, &degrees), NVML_SUCCESS);
  EXPECT_EQ(degrees, 77U);
  heals.join();
}

TEST_F(LibraryTest, EveryXidIsToldOnceToEverySet) {
  start("k80");
  auto* const first = events_of(device(0));
  auto* const second = events_of(device(0));
  auto* const other = events_of(device(1));
  EXPECT_TRUE(drain(first).empty());
  set_faults("{0: {xid: [48, 79]}}");
  EXPECT_THAT(drain(first), ElementsAre(48, 79));
  EXPECT_TRUE(drain(first).empty());
  EXPECT_THAT(drain(second), ElementsAre(48, 79));
  EXPECT_TRUE(drain(other).empty());
  set_faults("{0: {xid: [48, 79, 79]}}");
  EXPECT_THAT(drain(first), ElementsAre(79));
  set_faults("{0: {xid: []}}");
  EXPECT_TRUE(drain(first).empty());
  set_faults("{0: {xid: [31], lost: true}}");
  EXPECT_THAT(drain(first), ElementsAre(31)) << "the event of a GPU that fell off the bus still comes";
  for (auto* set : {first, second, other}) EXPECT_EQ(NVML(nvmlEventSetFree)(set), NVML_SUCCESS);
  EXPECT_EQ(NVML(nvmlEventSetFree)(first), NVML_ERROR_INVALID_ARGUMENT);
}

TEST_F(LibraryTest, AnXidOfAnInstanceSaysWhichOne) {
  start("dgx-a100");
  auto* const set = events_of(device(2));
  set_faults("{2: {xid: [{xid: 94, gpu_instance: 3, compute_instance: 0}, 79]}}");
  nvmlEventData_t event{};
  ASSERT_EQ(NVML(nvmlEventSetWait_v2)(set, &event, 1000), NVML_SUCCESS);
  EXPECT_EQ(event.eventData, 94U);
  EXPECT_EQ(event.gpuInstanceId, 3U);
  EXPECT_EQ(event.computeInstanceId, 0U);
  ASSERT_EQ(NVML(nvmlEventSetWait_v2)(set, &event, 1000), NVML_SUCCESS);
  EXPECT_EQ(event.gpuInstanceId, NVML_NO_INSTANCE_ID);
}

TEST_F(LibraryTest, AnAbsentGpuIsNotListed) {
  start("k80");
  const auto first = device(0);
  const auto second = device(1);
  char uuid[NVML_DEVICE_UUID_BUFFER_SIZE];
  ASSERT_EQ(NVML(nvmlDeviceGetUUID)(first, uuid, sizeof uuid), NVML_SUCCESS);
  set_faults("{0: {absent: true}}");
  unsigned int count = 0;
  EXPECT_EQ(NVML(nvmlDeviceGetCount_v2)(&count), NVML_SUCCESS);
  EXPECT_EQ(count, 1U);
  EXPECT_EQ(device(0), second);
  unsigned int index = 9;
  EXPECT_EQ(NVML(nvmlDeviceGetIndex)(second, &index), NVML_SUCCESS);
  EXPECT_EQ(index, 0U);
  nvmlDevice_t handle = nullptr;
  EXPECT_EQ(NVML(nvmlDeviceGetHandleByUUID)(uuid, &handle), NVML_ERROR_NOT_FOUND);
  EXPECT_EQ(NVML(nvmlDeviceGetIndex)(first, &index), NVML_ERROR_GPU_IS_LOST);
  set_faults("{}");
  EXPECT_EQ(device(0), first);
}

TEST_F(LibraryTest, PowerIsThatOfTheGpuAlone) {
  start("dgx-h100");
  nvmlFieldValue_t field{};
  field.fieldId = NVML_FI_DEV_POWER_INSTANT;
  EXPECT_EQ(NVML(nvmlDeviceGetFieldValues)(device(0), 1, &field), NVML_SUCCESS);
  EXPECT_EQ(field.nvmlReturn, NVML_SUCCESS);
  EXPECT_GE(field.value.ullVal, 70'000U);
  for (const unsigned int scope : {NVML_POWER_SCOPE_MODULE, NVML_POWER_SCOPE_MEMORY}) {
    field.scopeId = scope;
    EXPECT_EQ(NVML(nvmlDeviceGetFieldValues)(device(0), 1, &field), NVML_SUCCESS);
    EXPECT_EQ(field.nvmlReturn, NVML_ERROR_NOT_SUPPORTED) << scope;
  }
}

TEST_F(LibraryTest, RecoveryActionIsToldWhereTheDriverCan) {
  start("dgx-h100");
  nvmlFieldValue_t field{};
  field.fieldId = NVML_FI_DEV_GET_GPU_RECOVERY_ACTION;
  EXPECT_EQ(NVML(nvmlDeviceGetFieldValues)(device(0), 1, &field), NVML_SUCCESS);
  EXPECT_EQ(field.nvmlReturn, NVML_ERROR_NOT_SUPPORTED) << "driver 535";
  set_faults("{0: {recovery_action: reset}}");
  EXPECT_EQ(NVML(nvmlDeviceGetFieldValues)(device(0), 1, &field), NVML_SUCCESS);
  EXPECT_EQ(field.nvmlReturn, NVML_SUCCESS);
  EXPECT_EQ(field.value.ullVal, NVML_GPU_RECOVERY_ACTION_GPU_RESET);
}

TEST_F(LibraryTest, WaitingEndsWithTheEventOrTheTime) {
  start("k80");
  auto* const set = events_of(device(1));
  nvmlEventData_t event{};
  EXPECT_EQ(NVML(nvmlEventSetWait_v2)(set, &event, 0), NVML_ERROR_TIMEOUT);
  std::thread later([&] { set_faults("{1: {xid: [79]}}"); });
  EXPECT_EQ(NVML(nvmlEventSetWait_v2)(set, &event, 10000), NVML_SUCCESS);
  later.join();
  EXPECT_EQ(event.device, device(1));
  EXPECT_EQ(event.eventType, nvmlEventTypeXidCriticalError);
  EXPECT_EQ(event.eventData, 79U);
  nvmlEventData_v1_t old{};
  set_faults("{1: {xid: [79, 13]}}");
  EXPECT_EQ(NVML(nvmlEventSetWait)(set, &old, 1000), NVML_SUCCESS);
  EXPECT_EQ(old.eventData, 13U);
}

TEST_F(LibraryTest, ServesManyThreads) {
  start("dgx-a100");
  std::atomic<bool> stop = false;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (unsigned int index = 0; index < 4; ++index) {
    threads.emplace_back([&, index] {
      while (!stop) {
        unsigned int value = 99;
        if (NVML(nvmlInit_v2)() != NVML_SUCCESS) ++wrong;
        if (NVML(nvmlDeviceGetIndex)(device(index), &value) != NVML_SUCCESS || value != index) ++wrong;
        if (NVML(nvmlShutdown)() != NVML_SUCCESS) ++wrong;
      }
    });
  }
  for (int round = 0; round < 20; ++round) set_faults("{7: {temperature: " + std::to_string(round) + "}}");
  stop = true;
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(LibraryTest, WritesNothingOnStandardOutput) {
  testing::internal::CaptureStdout();
  start("k80");
  set_faults("{broken");
  device(0);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

}  // namespace
}  // namespace drover::sim

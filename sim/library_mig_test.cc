// MIG through the built library's C interface, as a client makes and finds instances.

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "gpu/nvml_abi.h"

namespace {

namespace fs = std::filesystem;

#define MIG_NVML(name) (reinterpret_cast<decltype(&::name)>(symbol(#name)))

class LibraryMigTest : public testing::Test {
 protected:
  LibraryMigTest() {
    fs::create_directories(folder_);
    ::setenv("DROVER_SIM_PROFILE", (fs::path(SIM_PROFILES) / "dgx-a100.yaml").c_str(), 1);
    ::setenv("DROVER_SIM_FAULTS", (folder_ / "faults.yaml").c_str(), 1);
    library_ = ::dlopen(SIM_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    EXPECT_EQ(MIG_NVML(nvmlInit_v2)(), NVML_SUCCESS);
    EXPECT_EQ(MIG_NVML(nvmlDeviceGetHandleByIndex_v2)(0, &gpu_), NVML_SUCCESS);
  }
  ~LibraryMigTest() override {
    MIG_NVML(nvmlShutdown)();
    ::dlclose(library_);
    for (const char* name : {"DROVER_SIM_PROFILE", "DROVER_SIM_FAULTS"}) ::unsetenv(name);
    fs::remove_all(folder_);
  }

  void* symbol(const char* name) const {
    void* address = ::dlsym(library_, name);
    EXPECT_NE(address, nullptr) << name;
    return address;
  }
  nvmlReturn_t set_mode(unsigned int mode) const {
    nvmlReturn_t activation{};
    return MIG_NVML(nvmlDeviceSetMigMode)(gpu_, mode, &activation);
  }
  std::pair<nvmlReturn_t, nvmlGpuInstance_t> create(unsigned int profile, unsigned int start,
                                                    unsigned int size) const {
    nvmlGpuInstance_t instance = nullptr;
    const nvmlGpuInstancePlacement_t placement{start, size};
    const auto code =
        MIG_NVML(nvmlDeviceCreateGpuInstanceWithPlacement)(gpu_, profile, &placement, &instance);
    return {code, instance};
  }
  std::string uuid_of(nvmlDevice_t device) const {
    char text[NVML_DEVICE_UUID_BUFFER_SIZE] = "";
    MIG_NVML(nvmlDeviceGetUUID)(device, text, sizeof text);
    return text;
  }

  const fs::path folder_ = fs::path(testing::TempDir()) / ("library_mig_test_" + std::to_string(::getpid()));
  void* library_ = nullptr;
  nvmlDevice_t gpu_ = nullptr;
};

constexpr unsigned int k1g = 19;
constexpr unsigned int k3g = 9;
constexpr std::size_t kMostPlacements = 8;

TEST_F(LibraryMigTest, AnInstanceBecomesADevice) {
  ASSERT_EQ(create(k3g, 4, 4).first, NVML_ERROR_NOT_SUPPORTED) << "MIG mode is off";
  ASSERT_EQ(set_mode(NVML_DEVICE_MIG_ENABLE), NVML_SUCCESS);
  const auto [code, instance] = create(k3g, 4, 4);
  ASSERT_EQ(code, NVML_SUCCESS);
  nvmlDevice_t device = nullptr;
  EXPECT_EQ(MIG_NVML(nvmlDeviceGetMigDeviceHandleByIndex)(gpu_, 0, &device), NVML_ERROR_NOT_FOUND);
  nvmlComputeInstance_t compute = nullptr;
  ASSERT_EQ(MIG_NVML(nvmlGpuInstanceCreateComputeInstance)(instance, NVML_COMPUTE_INSTANCE_PROFILE_3_SLICE,
                                                           &compute),
            NVML_SUCCESS);
  ASSERT_EQ(MIG_NVML(nvmlDeviceGetMigDeviceHandleByIndex)(gpu_, 0, &device), NVML_SUCCESS);
  EXPECT_THAT(uuid_of(device), testing::StartsWith("MIG-"));
  nvmlDevice_t found = nullptr;
  EXPECT_EQ(MIG_NVML(nvmlDeviceGetHandleByUUID)(uuid_of(device).c_str(), &found), NVML_SUCCESS);
  EXPECT_EQ(found, device);
  EXPECT_EQ(MIG_NVML(nvmlDeviceGetDeviceHandleFromMigDeviceHandle)(device, &found), NVML_SUCCESS);
  EXPECT_EQ(found, gpu_);
  nvmlDeviceAttributes_t attributes{};
  EXPECT_EQ(MIG_NVML(nvmlDeviceGetAttributes_v2)(device, &attributes), NVML_SUCCESS);
  EXPECT_EQ(attributes.multiprocessorCount, 42U);
  EXPECT_EQ(attributes.memorySizeMB, 19968U);
  unsigned int gpu_instance = 0;
  EXPECT_EQ(MIG_NVML(nvmlDeviceGetGpuInstanceId)(device, &gpu_instance), NVML_SUCCESS);
  nvmlGpuInstanceInfo_t info{};
  EXPECT_EQ(MIG_NVML(nvmlGpuInstanceGetInfo)(instance, &info), NVML_SUCCESS);
  EXPECT_EQ(info.id, gpu_instance);
  EXPECT_EQ(info.placement.start, 4U);
  unsigned int minor = 0;
  EXPECT_EQ(MIG_NVML(nvmlDeviceGetMinorNumber)(device, &minor), NVML_ERROR_INVALID_ARGUMENT);
}

TEST_F(LibraryMigTest, ProfilesOfComputeInstancesAreToldInEachVersion) {
  ASSERT_EQ(set_mode(NVML_DEVICE_MIG_ENABLE), NVML_SUCCESS);
  const auto instance = create(k3g, 4, 4).second;
  const auto ask = [&](unsigned int profile, auto& info) {
    return MIG_NVML(nvmlGpuInstanceGetComputeInstanceProfileInfoV)(
        instance, profile, NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED,
        reinterpret_cast<nvmlComputeInstanceProfileInfo_v2_t*>(&info));
  };
  nvmlComputeInstanceProfileInfo_v2_t one{.version = NVML_STRUCT_VERSION(ComputeInstanceProfileInfo, 2)};
  ASSERT_EQ(ask(0, one), NVML_SUCCESS);
  EXPECT_EQ(one.sliceCount, 1U);
  EXPECT_EQ(one.instanceCount, 3U);
  EXPECT_EQ(one.multiprocessorCount, 14U);
  EXPECT_STREQ(one.name, "MIG 1c.3g.20gb");
  nvmlComputeInstanceProfileInfo_v3_t all{.version = NVML_STRUCT_VERSION(ComputeInstanceProfileInfo, 3)};
  ASSERT_EQ(ask(NVML_COMPUTE_INSTANCE_PROFILE_3_SLICE, all), NVML_SUCCESS);
  EXPECT_EQ(all.instanceCount, 1U);
  EXPECT_STREQ(all.name, "MIG 3g.20gb");
  one.version = 7;
  EXPECT_EQ(ask(0, one), NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
}

TEST_F(LibraryMigTest, ADeviceAnswersWhatToolsAskOfIt) {
  ASSERT_EQ(set_mode(NVML_DEVICE_MIG_ENABLE), NVML_SUCCESS);
  nvmlComputeInstance_t compute = nullptr;
  for (const unsigned int start : {0U, 1U})
    ASSERT_EQ(MIG_NVML(nvmlGpuInstanceCreateComputeInstance)(create(k1g, start, 1).second, 0, &compute),
              NVML_SUCCESS);
  for (const unsigned int place : {0U, 1U}) {
    nvmlDevice_t device = nullptr;
    ASSERT_EQ(MIG_NVML(nvmlDeviceGetMigDeviceHandleByIndex)(gpu_, place, &device), NVML_SUCCESS);
    unsigned int index = 99;
    EXPECT_EQ(MIG_NVML(nvmlDeviceGetIndex)(device, &index), NVML_SUCCESS);
    EXPECT_EQ(index, place);
    nvmlBAR1Memory_t bar1{}, whole{};
    EXPECT_EQ(MIG_NVML(nvmlDeviceGetBAR1MemoryInfo)(device, &bar1), NVML_SUCCESS);
    EXPECT_EQ(MIG_NVML(nvmlDeviceGetBAR1MemoryInfo)(gpu_, &whole), NVML_SUCCESS);
    EXPECT_EQ(bar1.bar1Total, whole.bar1Total / 8);
    unsigned long long errors = 99;
    EXPECT_EQ(MIG_NVML(nvmlDeviceGetTotalEccErrors)(device, NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
                                                    NVML_VOLATILE_ECC, &errors),
              NVML_SUCCESS);
    EXPECT_EQ(errors, 0U);
    nvmlComputeMode_t mode = NVML_COMPUTEMODE_PROHIBITED;
    EXPECT_EQ(MIG_NVML(nvmlDeviceGetComputeMode)(device, &mode), NVML_SUCCESS);
  }
}

TEST_F(LibraryMigTest, NoMoreAreLeftThanTheProfileAllows) {
  ASSERT_EQ(set_mode(NVML_DEVICE_MIG_ENABLE), NVML_SUCCESS);
  unsigned int left = 99;
  constexpr unsigned int kMedia = 20;  // at many places, but once only
  ASSERT_EQ(MIG_NVML(nvmlDeviceGetGpuInstanceRemainingCapacity)(gpu_, kMedia, &left), NVML_SUCCESS);
  EXPECT_EQ(left, 1U);
  ASSERT_EQ(create(kMedia, 0, 1).first, NVML_SUCCESS);
  ASSERT_EQ(MIG_NVML(nvmlDeviceGetGpuInstanceRemainingCapacity)(gpu_, kMedia, &left), NVML_SUCCESS);
  EXPECT_EQ(left, 0U);
}

TEST_F(LibraryMigTest, WhatIsUsedCannotBeDestroyed) {
  ASSERT_EQ(set_mode(NVML_DEVICE_MIG_ENABLE), NVML_SUCCESS);
  const auto instance = create(k1g, 0, 1).second;
  nvmlComputeInstance_t compute = nullptr;
  ASSERT_EQ(MIG_NVML(nvmlGpuInstanceCreateComputeInstance)(instance, 0, &compute), NVML_SUCCESS);
  nvmlDevice_t device = nullptr;
  ASSERT_EQ(MIG_NVML(nvmlDeviceGetMigDeviceHandleByIndex)(gpu_, 0, &device), NVML_SUCCESS);
  EXPECT_EQ(set_mode(NVML_DEVICE_MIG_DISABLE), NVML_ERROR_IN_USE);
  EXPECT_EQ(MIG_NVML(nvmlGpuInstanceDestroy)(instance), NVML_ERROR_IN_USE);
  EXPECT_EQ(MIG_NVML(nvmlComputeInstanceDestroy)(compute), NVML_SUCCESS);
  EXPECT_EQ(MIG_NVML(nvmlComputeInstanceDestroy)(compute), NVML_ERROR_NOT_FOUND);
  EXPECT_EQ(MIG_NVML(nvmlGpuInstanceDestroy)(instance), NVML_SUCCESS);
  EXPECT_EQ(MIG_NVML(nvmlGpuInstanceDestroy)(instance), NVML_ERROR_NOT_FOUND);
  unsigned int id = 0;
  EXPECT_EQ(MIG_NVML(nvmlDeviceGetGpuInstanceId)(device, &id), NVML_ERROR_NOT_FOUND);
  EXPECT_EQ(set_mode(NVML_DEVICE_MIG_DISABLE), NVML_SUCCESS);
}

TEST_F(LibraryMigTest, PlacementsAreWholeOrRefused) {
  ASSERT_EQ(set_mode(NVML_DEVICE_MIG_ENABLE), NVML_SUCCESS);
  EXPECT_EQ(create(k3g, 0, 1).first, NVML_ERROR_INVALID_ARGUMENT) << "its size is 4";
  EXPECT_EQ(create(99, 0, 1).first, NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(create(k3g, 1, 4).first, NVML_ERROR_INSUFFICIENT_RESOURCES);
  nvmlGpuInstancePlacement_t placements[kMostPlacements];
  unsigned int count = 1;
  EXPECT_EQ(MIG_NVML(nvmlDeviceGetGpuInstancePossiblePlacements_v2)(gpu_, k1g, placements, &count),
            NVML_ERROR_INSUFFICIENT_SIZE);
  EXPECT_EQ(count, 7U);
  EXPECT_EQ(MIG_NVML(nvmlDeviceGetGpuInstancePossiblePlacements)(gpu_, k1g, placements, &count),
            NVML_SUCCESS);
  EXPECT_EQ(placements[6].start, 6U);
  ASSERT_EQ(create(k3g, 0, 4).first, NVML_SUCCESS);
  EXPECT_EQ(MIG_NVML(nvmlDeviceGetGpuInstanceRemainingCapacity)(gpu_, k1g, &count), NVML_SUCCESS);
  EXPECT_EQ(count, 3U);
}

TEST_F(LibraryMigTest, ProfilesAreAskedForByTheirNumbers) {
  nvmlGpuInstanceProfileInfo_v2_t info{.version = NVML_STRUCT_VERSION(GpuInstanceProfileInfo, 2)};
  EXPECT_EQ(
      MIG_NVML(nvmlDeviceGetGpuInstanceProfileInfoV)(gpu_, NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV1, &info),
      NVML_SUCCESS);
  EXPECT_STREQ(info.name, "MIG 1g.5gb+me");
  EXPECT_EQ(info.id, 20U);
  EXPECT_EQ(info.jpegCount, 1U);
  EXPECT_EQ(MIG_NVML(nvmlDeviceGetGpuInstanceProfileInfoV)(gpu_, NVML_GPU_INSTANCE_PROFILE_8_SLICE, &info),
            NVML_ERROR_NOT_SUPPORTED);
}

}  // namespace

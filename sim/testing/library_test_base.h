#pragma once

// The built library, as a client sees it: loaded by dlopen, called through the C interface.

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "gpu/nvml_abi.h"

namespace drover::sim {

/// A client of the library under test; `NVML(name)` is the function of that name.
#define NVML(name) (reinterpret_cast<decltype(&::name)>(symbol(#name)))

class LibraryTestBase : public testing::Test {
 protected:
  LibraryTestBase() { std::filesystem::create_directories(folder_); }
  ~LibraryTestBase() override {
    if (library_ != nullptr) {
      while (NVML(nvmlShutdown)() == NVML_SUCCESS) continue;
      ::dlclose(library_);
    }
    for (const char* name : {"DROVER_SIM_PROFILE", "DROVER_SIM_FAULTS", "DROVER_SIM_DEV"}) ::unsetenv(name);
    std::filesystem::remove_all(folder_);
  }

  void load(const std::filesystem::path& file = SIM_LIBRARY) {
    library_ = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << ::dlerror();
  }
  void start(const std::string& profile) {
    ::setenv("DROVER_SIM_PROFILE", (std::filesystem::path(SIM_PROFILES) / (profile + ".yaml")).c_str(), 1);
    ::setenv("DROVER_SIM_FAULTS", faults_.c_str(), 1);
    load();
    ASSERT_EQ(NVML(nvmlInit_v2)(), NVML_SUCCESS);
  }
  void* symbol(const char* name) const {
    void* address = ::dlsym(library_, name);
    EXPECT_NE(address, nullptr) << name;
    return address;
  }
  nvmlDevice_t device(unsigned int index) const {
    nvmlDevice_t handle = nullptr;
    EXPECT_EQ(NVML(nvmlDeviceGetHandleByIndex_v2)(index, &handle), NVML_SUCCESS);
    return handle;
  }
  void set_faults(const std::string& text) const {
    std::ofstream(faults_.string() + ".new") << text;
    std::filesystem::rename(faults_.string() + ".new", faults_);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }

  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / ("library_test_" + std::to_string(::getpid()));
  const std::filesystem::path faults_ = folder_ / "faults.yaml";
  void* library_ = nullptr;
};

}  // namespace drover::sim

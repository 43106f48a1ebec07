#pragma once

// A client of the built libcuda.so.1, in a process of its own: the library has one state a process.

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

#include "gpu/cuda_abi.h"

namespace drover::sim {

inline constexpr size_t kMib = 1 << 20;

inline void* cuda_symbol(const char* name) {
  static void* const library = ::dlopen(SIM_CUDA_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  return library == nullptr ? nullptr : ::dlsym(library, name);
}

/// The function of that name of the library under test.
#define CUDA(name) (reinterpret_cast<decltype(&::name)>(::drover::sim::cuda_symbol(#name)))

/// A process that runs a body, whose failed expectations are the parent's.
class ClientProcess {
 public:
  explicit ClientProcess(const std::function<void()>& body) : pid_(::fork()) {
    if (pid_ != 0) return;
    body();
    std::fflush(nullptr);
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  ClientProcess(const ClientProcess&) = delete;
  ClientProcess& operator=(const ClientProcess&) = delete;
  ~ClientProcess() { kill(); }

  /// Whether all went well.
  bool wait() {
    int status = -1;
    if (pid_ > 0) ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return status == 0;
  }
  void kill() {
    if (pid_ > 0) ::kill(pid_, SIGKILL);
    wait();
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

/// A simulated machine of its own, and the calls that most clients make.
class CudaTest : public testing::Test {
 protected:
  CudaTest() {
    std::filesystem::create_directories(folder_);
    ::setenv("DROVER_SIM_PROFILE", (std::string(SIM_PROFILES) + "/dgx-h100.yaml").c_str(), 1);
    ::setenv("DROVER_SIM_FAULTS", (folder_ / "faults.yaml").c_str(), 1);
  }
  ~CudaTest() override {
    for (const char* name :
         {"DROVER_SIM_PROFILE", "DROVER_SIM_FAULTS", "DROVER_SIM_LIVE", "CUDA_VISIBLE_DEVICES"})
      ::unsetenv(name);
    std::filesystem::remove_all(folder_);
  }

  static void in_process(const std::function<void()>& body) { EXPECT_TRUE(ClientProcess(body).wait()); }
  /// The same once a context of GPU 0 is current.
  static void in_context(const std::function<void()>& body) {
    in_process([&] {
      use();
      body();
    });
  }
  static CUcontext use(CUdevice device = 0) {
    CUcontext context = nullptr;
    EXPECT_EQ(CUDA(cuInit)(0), CUDA_SUCCESS);
    EXPECT_EQ(CUDA(cuDevicePrimaryCtxRetain)(&context, device), CUDA_SUCCESS);
    EXPECT_EQ(CUDA(cuCtxSetCurrent)(context), CUDA_SUCCESS);
    return context;
  }
  static std::uint64_t free_mib() {
    size_t free = 0;
    size_t total = 0;
    EXPECT_EQ(CUDA(cuMemGetInfo_v2)(&free, &total), CUDA_SUCCESS);
    return free >> 20;
  }
  static CUdeviceptr allocate(size_t size) {
    CUdeviceptr address = 0;
    EXPECT_EQ(CUDA(cuMemAlloc_v2)(&address, size), CUDA_SUCCESS);
    return address;
  }
  static CUfunction kernel(const char* name) {
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    const auto text = ".version 7.0\n.visible .entry " + std::string(name) + "(.param .u64 x){ret;}";
    EXPECT_EQ(CUDA(cuModuleLoadData)(&module, text.c_str()), CUDA_SUCCESS);
    EXPECT_EQ(CUDA(cuModuleGetFunction)(&function, module, name), CUDA_SUCCESS);
    return function;
  }
  static CUresult spin(CUfunction function, std::uint64_t microseconds, CUstream stream = nullptr) {
    void* parameters[] = {&microseconds};
    return CUDA(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr);
  }

  static constexpr std::uint64_t kTotalMib = 81008;
  static constexpr std::uint64_t kContextMib = 300;
  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / ("cuda_test_" + std::to_string(::getpid()));
};

}  // namespace drover::sim

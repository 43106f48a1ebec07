#pragma once

// A container as the guard sees one: a folder with our libraries, the simulated driver beside them under the
// names that ours need, and the two pages; and its processes, which are children of the test. What a child
// expects in vain fails the test.

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "gpu/cuda_abi.h"
#include "gpu/nvml_abi.h"
#include "guard/pages.h"
#include "sim/testing/shipped.h"

namespace drover::guard {

inline constexpr std::uint64_t kMib = 1 << 20;
inline constexpr std::uint64_t kGib = 1 << 30;
inline constexpr std::uint64_t kPiece = 2 * kMib;
inline constexpr std::uint64_t kContext = 300 * kMib;  ///< what one takes in simulated CUDA

#if defined(__has_feature)
inline constexpr bool kSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

/// Functions of one library, by their names.
class Functions {
 public:
  explicit Functions(const std::filesystem::path& file)
      : library_(::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (library_ == nullptr) ADD_FAILURE() << ::dlerror();
  }
  void* find(const char* name) const { return ::dlsym(library_, name); }
  void* get(const char* name) const {
    void* const address = find(name);
    if (address == nullptr) ADD_FAILURE() << name << " is missing";
    return address;
  }

 private:
  void* library_;
};

/// `CALL(functions, name)(arguments…)`.
#define CALL(functions, name) (reinterpret_cast<decltype(&::name)>((functions).get(#name)))

/// A process of the container, from inside.
class Client {
 public:
  explicit Client(const std::filesystem::path& folder)
      : cuda(folder / "libcuda.so.1"),
        nvml(folder / "libnvidia-ml.so.1"),
        driver_nvml(folder / "libdrover-driver-ml.so.1") {}

  /// CUDA, with a context on the first GPU.
  void start() {
    ASSERT_EQ(CALL(cuda, cuInit)(0), CUDA_SUCCESS);
    ASSERT_EQ(CALL(cuda, cuDeviceGet)(&device, 0), CUDA_SUCCESS);
    ASSERT_EQ(CALL(cuda, cuCtxCreate_v2)(&context, 0, device), CUDA_SUCCESS);
  }
  CUresult allocate(std::size_t bytes, CUdeviceptr* address = nullptr) {
    CUdeviceptr ignored = 0;
    return CALL(cuda, cuMemAlloc_v2)(address == nullptr ? &ignored : address, bytes);
  }
  CUresult free(CUdeviceptr address) { return CALL(cuda, cuMemFree_v2)(address); }

  /// What the card has given to processes, by their pids and the driver's own NVML.
  std::map<unsigned int, std::uint64_t> given_to_each() {
    std::vector<nvmlProcessInfo_t> processes(256);
    auto count = static_cast<unsigned int>(processes.size());
    EXPECT_EQ(CALL(driver_nvml, nvmlInit_v2)(), NVML_SUCCESS);
    nvmlDevice_t gpu = nullptr;
    EXPECT_EQ(CALL(driver_nvml, nvmlDeviceGetHandleByIndex_v2)(0, &gpu), NVML_SUCCESS);
    EXPECT_EQ(CALL(driver_nvml, nvmlDeviceGetComputeRunningProcesses_v3)(gpu, &count, processes.data()),
              NVML_SUCCESS);
    std::map<unsigned int, std::uint64_t> bytes;
    for (unsigned int i = 0; i < count; ++i) bytes[processes[i].pid] += processes[i].usedGpuMemory;
    return bytes;
  }
  std::uint64_t given() { return given_to_each()[static_cast<unsigned int>(::getpid())]; }
  /// To all, at a moment when two readings say the same: one alone may count what one gave back and another
  /// took.
  std::uint64_t given_to_all() {
    auto before = given_to_each();
    for (auto now = given_to_each(); now.size() > 1 && now != before; now = given_to_each())
      before = std::move(now);
    std::uint64_t bytes = 0;
    for (const auto& [pid, its] : before) bytes += its;
    return bytes;
  }
  /// What programs are told is free.
  std::uint64_t free_bytes() {
    std::size_t free = 0, total = 0;
    EXPECT_EQ(CALL(cuda, cuMemGetInfo_v2)(&free, &total), CUDA_SUCCESS);
    return free;
  }

  const Functions cuda, nvml, driver_nvml;
  CUdevice device = 0;
  CUcontext context = nullptr;
};

class Container : public testing::Test {
 protected:
  Container() {
    std::filesystem::create_directories(folder_);
    std::filesystem::create_symlink(GUARD_CUDA, folder_ / "libcuda.so.1");
    std::filesystem::create_symlink(GUARD_NVML, folder_ / "libnvidia-ml.so.1");
    std::filesystem::create_symlink(SIM_CUDA, folder_ / "libdrover-driver-cuda.so.1");
    std::filesystem::create_symlink(SIM_NVML, folder_ / "libdrover-driver-ml.so.1");
    set("DROVER_SIM_PROFILE", sim::profile_file("dgx-h100"));
    set("DROVER_SIM_FAULTS", folder_ / "faults");
    set("DROVER_SIM_LIVE", folder_ / "live");
    set("DROVER_GUARD_LIMITS", folder_ / "limits");
    set("DROVER_GUARD_ACCOUNT", folder_ / "account");
    fill(folder_ / "account", std::string(sizeof(guard_account), '\0'));
    account_ = static_cast<guard_account*>(map(folder_ / "account", sizeof(guard_account)));
  }
  ~Container() override {
    ::munmap(account_, sizeof(guard_account));
    for (const char* name : {"DROVER_SIM_PROFILE", "DROVER_SIM_FAULTS", "DROVER_SIM_LIVE",
                             "DROVER_GUARD_LIMITS", "DROVER_GUARD_ACCOUNT"})
      ::unsetenv(name);
    std::filesystem::remove_all(folder_);
  }

  static std::string uuid(std::size_t gpu) { return sim::shipped("dgx-h100").gpus.at(gpu).uuid; }

  /// The page of limits, for GPUs by their index.
  void limit(const std::map<std::size_t, std::uint64_t>& bytes) {
    guard_limits limits{};
    limits.magic = GUARD_LIMITS_MAGIC;
    limits.version = GUARD_LIMITS_VERSION;
    for (const auto& [gpu, most] : bytes) {
      auto& entry = limits.gpus[limits.count++];
      const auto text = uuid(gpu);
      std::copy(text.begin(), text.end(), entry.uuid);
      entry.bytes = most;
    }
    fill(folder_ / "limits", {reinterpret_cast<const char*>(&limits), sizeof limits});
  }

  /// Starts a process of the container.
  pid_t start(const std::function<void(Client&)>& body) {
    std::fflush(nullptr);
    const auto child = ::fork();
    if (child != 0) return child;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    {
      Client client(folder_);
      body(client);
    }
    std::fflush(nullptr);
    ::_exit(HasFailure() ? 1 : 0);
  }
  static void finish(pid_t child) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    if (WIFEXITED(status)) EXPECT_EQ(WEXITSTATUS(status), 0);
  }
  void run(const std::function<void(Client&)>& body) { finish(start(body)); }
  /// With a context on the first GPU.
  void run_cuda(const std::function<void(Client&)>& body) {
    run([&](Client& client) {
      client.start();
      if (!HasFailure()) body(client);
    });
  }

  /// What all slots say of the first entry of the limits, dead ones included.
  std::uint64_t booked() const {
    std::uint64_t units = 0;
    for (const auto& slot : account_->slots) units += __atomic_load_n(&slot.held[0], __ATOMIC_SEQ_CST) >> 32;
    return units * GUARD_UNIT;
  }

  /// Memory that children share with the test, all zero.
  template <typename T>
  static T* shared() {
    void* const at = ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) throw std::bad_alloc();
    return static_cast<T*>(at);
  }

  static void fill(const std::filesystem::path& file, const std::string& text) {
    std::ofstream(file, std::ios::binary) << text;
  }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() /
      ("drover-guard." + std::to_string(::getpid()) + "." + std::to_string(++count_));
  guard_account* account_ = nullptr;

 private:
  static void set(const char* name, const std::filesystem::path& value) { ::setenv(name, value.c_str(), 1); }
  static void* map(const std::filesystem::path& file, std::size_t size) {
    const int descriptor = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
    void* const at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    ::close(descriptor);
    return at;
  }
  static inline int count_ = 0;
};

/// Physical memory of the first GPU.
inline CUmemAllocationProp on_device() {
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  return prop;
}

/// PTX text with one variable.
inline std::string module_of(std::uint64_t bytes) {
  return ".version 8.0\n.target sm_90\n.address_size 64\n.global .align 4 .b8 data[" + std::to_string(bytes) +
         "];\n";
}

}  // namespace drover::guard

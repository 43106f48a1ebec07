// What the guard adds to a launch (docs/benchmarks.md): nanoseconds of cuLaunchKernel with a kernel that does
// nothing, on simulated CUDA, with and without the guard before it. Each way is a process of its own, and
// they are measured in turns, in one run.

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "gpu/cuda_abi.h"
#include "guard/layout.h"

namespace {

constexpr int kRounds = 20;
constexpr int kChunks = 50;
constexpr int kLaunches = 1000;  ///< a chunk

struct Way {
  std::string name;
  bool guarded = true;
  bool limited = true;
  std::uint32_t milli = 0;
};

double now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

template <typename Function>
Function* find(void* library, const char* name) {
  auto* const function = reinterpret_cast<Function*>(::dlsym(library, name));
  if (function == nullptr) throw std::runtime_error(std::string("there is no ") + name);
  return function;
}
#define FIND(library, name) find<decltype(::name)>(library, #name)

/// Nanoseconds a launch, the median of all chunks.
double measure(const std::filesystem::path& file) {
  void* const library = ::dlopen(file.c_str(), RTLD_NOW);
  if (library == nullptr) throw std::runtime_error(::dlerror());
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  const auto* const text = ".version 7.0\n.visible .entry empty(.param .u64 x){ret;}";
  if (FIND(library, cuInit)(0) != CUDA_SUCCESS ||
      FIND(library, cuCtxCreate_v2)(&context, 0, 0) != CUDA_SUCCESS ||
      FIND(library, cuModuleLoadData)(&module, text) != CUDA_SUCCESS ||
      FIND(library, cuModuleGetFunction)(&function, module, "empty") != CUDA_SUCCESS)
    throw std::runtime_error("Failed to start CUDA");
  auto* const launch = FIND(library, cuLaunchKernel);
  std::vector<double> chunks;
  for (int chunk = 0; chunk < kChunks; ++chunk) {
    const auto began = now_ns();
    for (int i = 0; i < kLaunches; ++i)
      if (launch(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) != CUDA_SUCCESS)
        throw std::runtime_error("Failed to launch");
    chunks.push_back((now_ns() - began) / kLaunches);
  }
  return median(std::move(chunks));
}

void write_file(const std::filesystem::path& file, const void* bytes, std::size_t size) {
  std::ofstream(file, std::ios::binary)
      .write(static_cast<const char*>(bytes), static_cast<std::streamsize>(size));
}

/// The pages of a container that has 8 GiB of the first GPU, and nobody beside it.
void write_pages(const std::filesystem::path& folder, const Way& way, const std::string& uuid) {
  guard_limits limits{};
  limits.magic = GUARD_LIMITS_MAGIC;
  limits.version = GUARD_LIMITS_VERSION;
  limits.count = 1;
  std::ranges::copy(uuid, limits.gpus[0].uuid);
  limits.gpus[0].bytes = std::uint64_t{8} << 30;
  limits.turns[0].milli = way.milli;
  limits.turns[0].until_ns = GUARD_NOBODY_ELSE;
  write_file(folder / "account", std::string(sizeof(guard_account), '\0').data(), sizeof(guard_account));
  if (way.limited) write_file(folder / "limits", &limits, sizeof(limits));
}

std::string uuid_of_first(const std::filesystem::path& driver) {
  void* const library = ::dlopen(driver.c_str(), RTLD_NOW);
  CUuuid uuid{};
  if (library == nullptr || FIND(library, cuInit)(0) != CUDA_SUCCESS ||
      FIND(library, cuDeviceGetUuid)(&uuid, 0) != CUDA_SUCCESS)
    throw std::runtime_error("Failed to ask simulated CUDA for a GPU");
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    char hex[3];
    std::snprintf(hex, sizeof(hex), "%02x", static_cast<unsigned char>(uuid.bytes[i]));
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += hex;
  }
  return text;
}

/// What `body` returns in a process of its own.
template <typename Value>
Value in_child(const std::function<Value()>& body) {
  int ends[2];
  if (::pipe(ends) != 0) throw std::runtime_error("Failed to make a pipe");
  const auto child = ::fork();
  if (child == 0) {
    try {
      const Value value = body();
      ::_exit(::write(ends[1], &value, sizeof(value)) == sizeof(value) ? 0 : 1);
    } catch (const std::exception& error) {
      std::cerr << error.what() << "\n";
      ::_exit(1);
    }
  }
  ::close(ends[1]);
  Value value{};
  const bool read = ::read(ends[0], &value, sizeof(value)) == sizeof(value);
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  if (!read) throw std::runtime_error("a process failed");
  return value;
}

void run(const std::filesystem::path& folder) {
  const std::vector<Way> ways{{"the driver alone", false, false, 0},
                              {"the guard, nothing limited", true, false, 0},
                              {"the guard, memory limited", true, true, 0},
                              {"the guard, time limited, alone on the GPU", true, true, 500}};
  std::filesystem::create_symlink(BENCH_GUARD, folder / "libcuda.so.1");
  std::filesystem::create_symlink(BENCH_SIM_CUDA, folder / "libdrover-driver-cuda.so.1");
  std::filesystem::create_symlink(BENCH_SIM_NVML, folder / "libdrover-driver-ml.so.1");
  ::setenv("DROVER_SIM_PROFILE", BENCH_PROFILE, 1);
  ::setenv("CUDA_VISIBLE_DEVICES", "0", 1);  // as in a container with one GPU
  ::setenv("DROVER_SIM_LIVE", (folder / "live").c_str(), 1);
  ::setenv("DROVER_GUARD_LIMITS", (folder / "limits").c_str(), 1);
  ::setenv("DROVER_GUARD_ACCOUNT", (folder / "account").c_str(), 1);
  struct Uuid {
    char text[56];
  };
  const auto uuid = in_child<Uuid>([&] {
    Uuid answer{};
    std::ranges::copy(uuid_of_first(folder / "libdrover-driver-cuda.so.1"), answer.text);
    return answer;
  });
  std::vector<std::vector<double>> measured(ways.size());
  for (int round = 0; round < kRounds; ++round)
    for (std::size_t i = 0; i < ways.size(); ++i) {
      std::filesystem::remove(folder / "limits");
      write_pages(folder, ways[i], uuid.text);
      const auto file = folder / (ways[i].guarded ? "libcuda.so.1" : "libdrover-driver-cuda.so.1");
      measured[i].push_back(in_child<double>([&] { return measure(file); }));
    }
  const auto alone = std::ranges::min(measured[0]);
  for (std::size_t i = 0; i < ways.size(); ++i) {
    const auto best = std::ranges::min(measured[i]);
    std::cout << ways[i].name << ": " << std::lround(best * 10) / 10.0 << " ns a launch, "
              << std::lround((best - alone) * 10) / 10.0 << " ns more\n";
  }
}

}  // namespace

int main() {
  std::string folder = (std::filesystem::temp_directory_path() / "drover-launches.XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return 1;
  int status = 0;
  try {
    run(folder);
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    status = 1;
  }
  std::filesystem::remove_all(folder);
  return status;
}

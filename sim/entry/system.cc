// The library's life, and what concerns the machine as a whole.

#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <mutex>

#include "sim/entry/call.h"

using namespace drover::sim;

namespace {

// The C interface has no handle for the library, so its state can only be the process's.
class Library {
 public:
  nvmlReturn_t init() {
    const std::scoped_lock lock(mutex_);
    if (users_ == 0) {
      const auto settings = settings_from_environment(own_file());
      auto machine = Machine::open(settings);
      if (!machine) {
        if (settings.verbose) std::fprintf(stderr, "drover-sim: %s\n", to_string(machine.error()).c_str());
        return NVML_ERROR_DRIVER_NOT_LOADED;
      }
      session_ = std::make_shared<const Session>(Session{std::move(*machine), std::make_shared<EventSets>()});
    }
    ++users_;
    return NVML_SUCCESS;
  }

  nvmlReturn_t shutdown() {
    const std::scoped_lock lock(mutex_);
    if (users_ == 0) return NVML_ERROR_UNINITIALIZED;
    if (--users_ == 0) session_.reset();
    return NVML_SUCCESS;
  }

  std::shared_ptr<const Session> session() {
    const std::scoped_lock lock(mutex_);
    return session_;
  }

 private:
  static std::filesystem::path own_file() {
    Dl_info info{};
    if (dladdr(reinterpret_cast<const void*>(&nvmlInit_v2), &info) == 0) return {};
    std::error_code error;
    return std::filesystem::canonical(info.dli_fname, error);
  }

  std::mutex mutex_;
  int users_ = 0;
  std::shared_ptr<const Session> session_;
};

Library& library() {
  static Library instance;
  return instance;
}

nvmlReturn_t init() noexcept {
  try {
    return library().init();
  } catch (...) {
    return NVML_ERROR_UNKNOWN;
  }
}

}  // namespace

std::shared_ptr<const Session> drover::sim::current_session() {
  return library().session();
}

nvmlReturn_t nvmlInit() {
  return init();
}
nvmlReturn_t nvmlInit_v2() {
  return init();
}
nvmlReturn_t nvmlInitWithFlags(unsigned int) {
  return init();
}
nvmlReturn_t nvmlShutdown() {
  return library().shutdown();
}

const char* nvmlErrorString(nvmlReturn_t result) {
  static constexpr std::array kNames{"Success",
                                     "Uninitialized",
                                     "Invalid Argument",
                                     "Not Supported",
                                     "Insufficient Permissions",
                                     "Already Initialized",
                                     "Not Found",
                                     "Insufficient Size",
                                     "Insufficient External Power",
                                     "Driver Not Loaded",
                                     "Timeout",
                                     "Interrupt Request Issue",
                                     "NVML Shared Library Not Found",
                                     "Function Not Found",
                                     "Corrupted infoROM",
                                     "GPU is lost",
                                     "GPU requires reset",
                                     "Blocked by the operating system",
                                     "Driver/library version mismatch",
                                     "In use by another client",
                                     "Insufficient Memory",
                                     "No data",
                                     "ECC not supported with vGPU",
                                     "Insufficient Resources",
                                     "Frequency Not Supported",
                                     "Argument version mismatch",
                                     "Deprecated",
                                     "Not Ready",
                                     "GPU not found",
                                     "Invalid state"};
  const auto code = static_cast<std::size_t>(result);
  return code < kNames.size() ? kNames[code] : "Unknown Error";
}

nvmlReturn_t nvmlSystemGetDriverVersion(char* version, unsigned int length) {
  return with_session([&](const Session& session) {
    return answer_text(version, length, session.machine->profile().driver_version);
  });
}

// The vendor's library carries its major version in front: "12.535.129.03" since drivers of CUDA 12.
nvmlReturn_t nvmlSystemGetNVMLVersion(char* version, unsigned int length) {
  return with_session([&](const Session& session) {
    const auto& profile = session.machine->profile();
    return answer_text(version, length, std::to_string(profile.cuda_major) + "." + profile.driver_version);
  });
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion(int* version) {
  return with_session([&](const Session& session) {
    const auto& profile = session.machine->profile();
    return answer(version, 1000 * profile.cuda_major + 10 * profile.cuda_minor);
  });
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int* version) {
  return nvmlSystemGetCudaDriverVersion(version);
}

nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char* name, unsigned int length) {
  return with_session([&](const Session&) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/cmdline", std::ios::binary);
    std::string command;
    if (!std::getline(file, command, '\0') || command.empty()) return NVML_ERROR_NOT_FOUND;
    return answer_text(name, length, std::string_view(command).substr(0, length == 0 ? 0 : length - 1));
  });
}

nvmlReturn_t nvmlSystemGetHicVersion(unsigned int* count, void*) {
  return with_session([&](const Session&) { return answer(count, 0); });
}

nvmlReturn_t nvmlUnitGetCount(unsigned int* count) {
  return with_session([&](const Session&) { return answer(count, 0); });
}

nvmlReturn_t nvmlGetExcludedDeviceCount(unsigned int* count) {
  return with_session([&](const Session&) { return answer(count, 0); });
}

nvmlReturn_t nvmlGetExcludedDeviceInfoByIndex(unsigned int, nvmlExcludedDeviceInfo_t*) {
  return with_session([&](const Session&) { return NVML_ERROR_INVALID_ARGUMENT; });
}

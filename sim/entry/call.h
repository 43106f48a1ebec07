#pragma once

// What every entry point does before and after its own work: is the library initialised, is the handle one of
// ours, is the GPU slow, lost or told to fail; and how answers go out through C pointers. Thread safe. No
// exception leaves.

#include <algorithm>
#include <chrono>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "gpu/nvml_abi.h"
#include "sim/activity.h"
#include "sim/events.h"
#include "sim/machine.h"

namespace drover::sim {

/// What lives from nvmlInit to the last nvmlShutdown.
struct Session {
  std::shared_ptr<const Machine> machine;
  std::shared_ptr<EventSets> events;
};

/// The session that is open now; null before nvmlInit and after nvmlShutdown.
std::shared_ptr<const Session> current_session();

/// One call on one GPU.
struct Call {
  const Session& session;
  const Machine& machine;
  const nvmlDevice_st& device;
  const Gpu& gpu;
  const Model& model;
  const GpuFaults& faults;

  /// What runs there now; each call of this looks.
  Activity activity() const { return activity_of(faults, machine.live().current()[device.position]); }
  Utilization utilization() const { return activity().utilization; }
};

/// Runs `body(const Session&)` when the library is initialised.
template <typename Body>
nvmlReturn_t with_session(Body body) noexcept {
  try {
    const auto session = current_session();
    return session ? body(*session) : NVML_ERROR_UNINITIALIZED;
  } catch (const std::bad_alloc&) {
    return NVML_ERROR_MEMORY;
  } catch (...) {
    return NVML_ERROR_UNKNOWN;
  }
}

/// Waits as long as the GPU is slow, and returns the faults that are there by then. It is over with the
/// fault.
inline std::shared_ptr<const Faults> faults_in_time(const Machine& machine, std::size_t position) {
  constexpr std::chrono::milliseconds kPause{5};
  const auto began = std::chrono::steady_clock::now();
  while (true) {
    auto faults = machine.faults();
    const auto rest = (*faults)[position].slow - (std::chrono::steady_clock::now() - began);
    if (rest.count() <= 0) return faults;
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(rest, kPause));
  }
}

/// Runs `body(const Call&)` for a device of the session, unless its faults answer first.
template <typename Body>
nvmlReturn_t on_device(const char* function, const Session& session, const nvmlDevice_st& device, Body body) {
  const auto all_faults = faults_in_time(*session.machine, device.position);
  const auto& faults = (*all_faults)[device.position];
  if (faults.lost || faults.absent) return NVML_ERROR_GPU_IS_LOST;
  if (const auto code = faults.failure(function)) return static_cast<nvmlReturn_t>(*code);
  return body(Call{session, *session.machine, device, *device.gpu, device.gpu->model, faults});
}

/// The same for a handle that a client gave. `function` is `__func__` of the entry point.
template <typename Body>
nvmlReturn_t with_device(const char* function, nvmlDevice_t handle, Body body) noexcept {
  return with_session([&](const Session& session) {
    const auto* device = session.machine->find(handle);
    if (device == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    return on_device(function, session, *device, body);
  });
}

/// A MIG device: a compute instance as a whole device of its own.
struct MigPart {
  const GpuInstance& instance;
  const ComputeInstance& compute;
};

/// Runs `whole(const Call&)` for a GPU, or `part(const Call&, const MigPart&)` for a MIG device.
template <typename Whole, typename Part>
nvmlReturn_t with_device_or_part(const char* function, nvmlDevice_t handle, Whole whole, Part part) noexcept {
  return with_session([&](const Session& session) {
    if (const auto* device = session.machine->find(handle))
      return on_device(function, session, *device, whole);
    const auto place = session.machine->mig_handles().devices.find(handle);
    const auto* parent = place ? session.machine->at(place->position) : nullptr;
    if (parent == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    return on_device(function, session, *parent, [&](const Call& call) {
      const auto state = session.machine->mig().current();
      const auto* instance = (*state)[place->position].find(place->gpu_instance);
      if (instance == nullptr) return NVML_ERROR_NOT_FOUND;
      for (const auto& compute : instance->compute)
        if (compute.id == place->compute_instance) return part(call, MigPart{*instance, compute});
      return NVML_ERROR_NOT_FOUND;
    });
  });
}

template <typename Out, typename Value>
nvmlReturn_t answer(Out* out, const Value& value) {
  if (out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *out = static_cast<Out>(value);
  return NVML_SUCCESS;
}

/// Nothing to say: the card does not have it.
template <typename Out, typename Value>
nvmlReturn_t answer(Out* out, const std::optional<Value>& value) {
  if (out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  return value ? answer(out, *value) : NVML_ERROR_NOT_SUPPORTED;
}

/// An empty text means that the card does not have it.
inline nvmlReturn_t answer_text(char* buffer, unsigned int length, std::string_view text) {
  if (buffer == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (text.empty()) return NVML_ERROR_NOT_SUPPORTED;
  if (length <= text.size()) return NVML_ERROR_INSUFFICIENT_SIZE;
  *std::copy(text.begin(), text.end(), buffer) = '\0';
  return NVML_SUCCESS;
}

/// `*count` is the room in `out`, and then the number written or needed.
template <typename Out>
nvmlReturn_t answer_list(unsigned int* count, Out* out, const std::vector<Out>& values) {
  if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const auto room = *count;
  *count = static_cast<unsigned int>(values.size());
  if (values.empty()) return NVML_SUCCESS;
  if (room < values.size()) return NVML_ERROR_INSUFFICIENT_SIZE;
  if (out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  std::copy(values.begin(), values.end(), out);
  return NVML_SUCCESS;
}

/// Copies into a fixed buffer of a structure, cut to its size.
template <std::size_t Size>
void copy_text(char (&buffer)[Size], std::string_view text) {
  const auto length = std::min(text.size(), Size - 1);
  *std::copy_n(text.begin(), length, buffer) = '\0';
}

/// An entry point that answers one value about one GPU: `value(const Call&)` gives it, or an empty optional.
template <typename Out, typename Value>
nvmlReturn_t get(const char* function, nvmlDevice_t handle, Out* out, Value value) noexcept {
  return with_device(function, handle, [&](const Call& call) { return answer(out, value(call)); });
}

template <typename Value>
nvmlReturn_t get_text(const char* function, nvmlDevice_t handle, char* buffer, unsigned int length,
                      Value value) noexcept {
  return with_device(function, handle,
                     [&](const Call& call) { return answer_text(buffer, length, value(call)); });
}

}  // namespace drover::sim

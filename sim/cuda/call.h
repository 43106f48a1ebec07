#pragma once

// What every entry point does before its own work: is the library initialised, is there a current context, is
// its GPU lost. No exception leaves.

#include <new>
#include <system_error>

#include "sim/cuda/context.h"
#include "sim/cuda/driver.h"

namespace drover::sim::cuda {

template <typename Body>
CUresult guarded(Body body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  } catch (const std::system_error&) {
    return CUDA_ERROR_OPERATING_SYSTEM;
  } catch (...) {
    return CUDA_ERROR_UNKNOWN;
  }
}

/// Runs `body(Driver&)` when the library is initialised.
template <typename Body>
CUresult with_driver(Body body) noexcept {
  return guarded([&] {
    auto* const driver = Driver::get();
    return driver == nullptr ? CUDA_ERROR_NOT_INITIALIZED : body(*driver);
  });
}

/// Runs `body(Driver&, Device&)` for a device of the process.
template <typename Body>
CUresult with_device(CUdevice ordinal, Body body) noexcept {
  return with_driver([&](Driver& driver) {
    auto* const device = driver.device(ordinal);
    return device == nullptr ? CUDA_ERROR_INVALID_DEVICE : body(driver, *device);
  });
}

/// Whether somebody still wants the primary context, though it may have been reset.
inline bool retained(Device& device) {
  const std::scoped_lock lock(device.mutex);
  return device.primary_retained > 0;
}

/// Runs `body(Context&)` for the current context.
template <typename Body>
CUresult in_context(Body body) noexcept {
  return with_driver([&](Driver& driver) {
    auto* const context = current_context();
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if (driver.lost(context->device)) return CUDA_ERROR_DEVICE_UNAVAILABLE;
    if (context->destroyed) {
      if (!context->primary || !retained(context->device)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
      if (const auto result = context->revive(); result != CUDA_SUCCESS) return result;
    }
    return body(*context);
  });
}

/// Runs `body(Context&, Stream&)` for a stream, which may be of another context than the current one.
template <typename Body>
CUresult on_stream(CUstream handle, Body body) noexcept {
  return in_context([&](Context& current) {
    const auto stream = find_stream(current, handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    const auto context = stream->context.lock();
    if (!context || context->destroyed) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return body(*context, *stream);
  });
}

template <typename Out, typename Value>
CUresult answer(Out* out, Value value) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = static_cast<Out>(value);
  return CUDA_SUCCESS;
}

/// Defines NAME_ptds, which has a default stream for each thread: what waits for all work needs no other
/// code.
#define DROVER_SAME_PER_THREAD(name) decltype(name) name##_ptds __attribute__((alias(#name)))
/// Defines an older name of a function that has not changed since.
#define DROVER_SAME_AS(name, older) decltype(older) older __attribute__((alias(#name)))
/// Defines NAME_ptsz, whose default stream is the thread's: `per_thread(stream)` among the arguments.
#define DROVER_PER_THREAD(name, parameters, ...) \
  CUresult name##_ptsz parameters {              \
    return name(__VA_ARGS__);                    \
  }

}  // namespace drover::sim::cuda

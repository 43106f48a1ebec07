// Contexts: the primary one of each device, and those that clients make.

#include "sim/cuda/call.h"

using namespace drover::sim::cuda;

namespace {

constexpr unsigned int kVersion = 3020;
constexpr unsigned int kFlags = 0x7F;

CUcontext handle_of(Context* context) {
  return Handles<Context, CUcontext>::to_handle(context);
}

CUresult create(CUcontext* out, unsigned int flags, CUdevice ordinal) {
  return with_device(ordinal, [&](Driver& driver, Device& device) {
    if (out == nullptr || (flags & ~kFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
    CUresult result{};
    auto context = Context::make(driver, device, false, flags, kVersion, result);
    if (!context) return result;
    *out = handle_of(context.get());
    context_stack().push_back(std::move(context));
    return CUDA_SUCCESS;
  });
}

/// Runs `body(Context&)` for the context of a handle, or the current one.
template <typename Body>
CUresult in_named_context(CUcontext handle, Body body) {
  if (handle == nullptr) return in_context(body);
  return with_driver([&](Driver& driver) {
    const auto context = driver.contexts.find(handle);
    return context ? body(*context) : CUDA_ERROR_INVALID_CONTEXT;
  });
}

/// The primary context has all taken away. Whoever still retains it has it anew with the next call.
void reset_primary(Device& device) {
  std::shared_ptr<Context> primary;
  {
    const std::scoped_lock lock(device.mutex);
    primary = device.primary;
  }
  if (primary) primary->destroy();
}

}  // namespace

CUresult cuDevicePrimaryCtxRetain(CUcontext* out, CUdevice ordinal) {
  return with_device(ordinal, [&](Driver& driver, Device& device) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::scoped_lock lock(device.mutex);
    CUresult result{};
    if (!device.primary)
      device.primary = Context::make(driver, device, true, device.primary_flags, kVersion, result);
    else
      result = device.primary->revive();
    if (result != CUDA_SUCCESS) return result;
    ++device.primary_retained;
    *out = handle_of(device.primary.get());
    return CUDA_SUCCESS;
  });
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice ordinal) {
  return with_device(ordinal, [](Driver&, Device& device) {
    {
      const std::scoped_lock lock(device.mutex);
      if (device.primary_retained == 0) return CUDA_ERROR_INVALID_CONTEXT;
      if (--device.primary_retained > 0) return CUDA_SUCCESS;
    }
    reset_primary(device);
    return CUDA_SUCCESS;
  });
}
CUresult cuDevicePrimaryCtxReset_v2(CUdevice ordinal) {
  return with_device(ordinal, [](Driver&, Device& device) {
    reset_primary(device);
    return CUDA_SUCCESS;
  });
}
CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice ordinal, unsigned int flags) {
  return with_device(ordinal, [&](Driver&, Device& device) {
    if ((flags & ~kFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
    const std::scoped_lock lock(device.mutex);
    device.primary_flags = flags;
    if (device.primary) device.primary->flags = flags;
    return CUDA_SUCCESS;
  });
}
DROVER_SAME_AS(cuDevicePrimaryCtxRelease_v2, cuDevicePrimaryCtxRelease);
DROVER_SAME_AS(cuDevicePrimaryCtxReset_v2, cuDevicePrimaryCtxReset);
DROVER_SAME_AS(cuDevicePrimaryCtxSetFlags_v2, cuDevicePrimaryCtxSetFlags);

CUresult cuDevicePrimaryCtxGetState(CUdevice ordinal, unsigned int* flags, int* active) {
  return with_device(ordinal, [&](Driver&, Device& device) {
    if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::scoped_lock lock(device.mutex);
    *flags = device.primary_flags;
    *active = device.primary && !device.primary->destroyed ? 1 : 0;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxCreate_v2(CUcontext* context, unsigned int flags, CUdevice device) {
  return create(context, flags, device);
}
CUresult cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam*, int, unsigned int flags, CUdevice device) {
  return create(context, flags, device);
}
CUresult cuCtxCreate_v4(CUcontext* context, CUctxCreateParams*, unsigned int flags, CUdevice device) {
  return create(context, flags, device);
}
DROVER_SAME_AS(cuCtxCreate_v2, cuCtxCreate);

CUresult cuCtxDestroy_v2(CUcontext handle) {
  return with_driver([&](Driver& driver) {
    const auto context = driver.contexts.find(handle);
    if (!context || context->primary) return CUDA_ERROR_INVALID_CONTEXT;
    context->destroy();
    auto& stack = context_stack();
    if (!stack.empty() && stack.back() == context) stack.pop_back();
    return CUDA_SUCCESS;
  });
}
DROVER_SAME_AS(cuCtxDestroy_v2, cuCtxDestroy);

CUresult cuCtxPushCurrent_v2(CUcontext handle) {
  return with_driver([&](Driver& driver) {
    auto context = driver.contexts.find(handle);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    context_stack().push_back(std::move(context));
    return CUDA_SUCCESS;
  });
}
CUresult cuCtxPopCurrent_v2(CUcontext* out) {
  return with_driver([&](Driver&) {
    auto& stack = context_stack();
    if (stack.empty() || !stack.back()) return CUDA_ERROR_INVALID_CONTEXT;
    if (out != nullptr) *out = handle_of(stack.back().get());
    stack.pop_back();
    return CUDA_SUCCESS;
  });
}
DROVER_SAME_AS(cuCtxPushCurrent_v2, cuCtxPushCurrent);
DROVER_SAME_AS(cuCtxPopCurrent_v2, cuCtxPopCurrent);

CUresult cuCtxSetCurrent(CUcontext handle) {
  return with_driver([&](Driver& driver) {
    auto& stack = context_stack();
    if (handle == nullptr) {
      if (!stack.empty()) stack.pop_back();
      return CUDA_SUCCESS;
    }
    auto context = driver.contexts.find(handle);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    if (stack.empty()) stack.emplace_back();
    stack.back() = std::move(context);
    return CUDA_SUCCESS;
  });
}
CUresult cuCtxGetCurrent(CUcontext* out) {
  return with_driver([&](Driver&) { return answer(out, handle_of(current_context())); });
}

CUresult cuCtxGetDevice(CUdevice* out) {
  return with_driver([&](Driver&) {
    const auto* const context = current_context();
    return context == nullptr ? CUDA_ERROR_INVALID_CONTEXT : answer(out, context->device.ordinal);
  });
}
CUresult cuCtxGetDevice_v2(CUdevice* out, CUcontext handle) {
  return in_named_context(handle, [&](Context& context) { return answer(out, context.device.ordinal); });
}

CUresult cuCtxSynchronize() {
  return in_context([](Context& context) {
    context.synchronize();
    return CUDA_SUCCESS;
  });
}
CUresult cuCtxSynchronize_v2(CUcontext handle) {
  return in_named_context(handle, [](Context& context) {
    context.synchronize();
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  return in_context([&](Context& context) { return context.set_limit(limit, value); });
}
CUresult cuCtxGetLimit(size_t* value, CUlimit limit) {
  return in_context([&](Context& context) {
    if (limit < 0 || limit >= CU_LIMIT_MAX) return CUDA_ERROR_INVALID_VALUE;
    const std::scoped_lock lock(context.mutex);
    return answer(value, context.limits[static_cast<std::size_t>(limit)]);
  });
}

CUresult cuCtxGetApiVersion(CUcontext handle, unsigned int* version) {
  return in_named_context(handle, [&](Context& context) { return answer(version, context.version); });
}
CUresult cuCtxGetFlags(unsigned int* flags) {
  return in_context([&](Context& context) { return answer(flags, context.flags.load()); });
}
CUresult cuCtxGetId(CUcontext handle, unsigned long long* id) {
  return in_named_context(handle, [&](Context& context) { return answer(id, context.id); });
}
CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return in_context([&](Context&) {
    if (least != nullptr) *least = 0;
    if (greatest != nullptr) *greatest = -5;
    return CUDA_SUCCESS;
  });
}
CUresult cuCtxGetCacheConfig(CUfunc_cache* config) {
  return in_context([&](Context& context) { return answer(config, context.cache_config.load()); });
}
CUresult cuCtxSetCacheConfig(CUfunc_cache config) {
  return in_context([&](Context& context) {
    context.cache_config = config;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags) {
  return in_context([&](Context& context) {
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    return context.driver.contexts.find(peer) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
  });
}
CUresult cuCtxDisablePeerAccess(CUcontext peer) {
  return in_context([&](Context& context) {
    return context.driver.contexts.find(peer) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
  });
}

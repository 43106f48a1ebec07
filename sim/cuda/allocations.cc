// Memory of GPUs and of the host.

#include <sys/mman.h>

#include "sim/cuda/call.h"
#include "sim/cuda/graph.h"
#include "sim/cuda/pool.h"

using namespace drover::sim::cuda;

namespace {

constexpr unsigned int kManagedFlag = 1;
constexpr unsigned int kHostFlags = 0xF;

std::shared_ptr<void> pages(std::uint64_t size) {
  void* const at =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return nullptr;
  return {at, [size](void* address) { ::munmap(address, size); }};
}

/// Adds the range of memory that was had at an address, and tells it.
template <typename Out>
CUresult had(Context& context, Out* out, Range range) {
  range.device = &context.device;
  range.context = context.weak_from_this();
  range.id = context.driver.next_id();
  *out = (Out)range.address;
  context.driver.memory.add(std::move(range));
  return CUDA_SUCCESS;
}

CUresult allocate(Context& context, CUdeviceptr* out, std::uint64_t size, unsigned int flags = 0) {
  if (out == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
  if (size > kMostBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  std::uint64_t address = 0;
  {
    const std::scoped_lock lock(context.mutex);
    address = context.heap->allocate(size);
  }
  if (address == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  return had(context, out, {.address = address, .size = size, .kind = RangeKind::kDevice, .flags = flags});
}

CUresult allocate_pages(Context& context, void** out, std::uint64_t size, RangeKind kind,
                        unsigned int flags) {
  if (out == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
  auto memory = size > kMostBytes ? nullptr : pages(size);
  if (!memory) return CUDA_ERROR_OUT_OF_MEMORY;
  return had(context, out,
             {.address = reinterpret_cast<std::uint64_t>(memory.get()),
              .size = size,
              .kind = kind,
              .flags = flags,
              .backing = memory});
}

CUresult free_host(void* host, RangeKind kind, CUresult otherwise) {
  return with_driver([&](Driver& driver) {
    const auto address = reinterpret_cast<std::uint64_t>(host);
    const auto range = driver.memory.find(address);
    if (!range) return otherwise;
    if (const auto owner = range->context.lock()) owner->queue.drain();
    return driver.memory.take(address, kind) ? CUDA_SUCCESS : otherwise;
  });
}

}  // namespace

CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
  return in_context([&](Context& context) {
    if (free != nullptr) *free = context.driver.free_bytes(context.device);
    if (total != nullptr) *total = context.driver.seen_bytes(context.device);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemAlloc_v2(CUdeviceptr* out, size_t size) {
  return in_context([&](Context& context) { return allocate(context, out, size); });
}

CUresult cuMemAllocPitch_v2(CUdeviceptr* out, size_t* pitch, size_t width, size_t height,
                            unsigned int element) {
  return in_context([&](Context& context) {
    constexpr std::size_t kAlignment = 512;
    if (pitch == nullptr || (element != 4 && element != 8 && element != 16)) return CUDA_ERROR_INVALID_VALUE;
    if (width > kMostBytes || height > kMostBytes / kAlignment) return CUDA_ERROR_OUT_OF_MEMORY;
    const auto row = (width + kAlignment - 1) / kAlignment * kAlignment;
    std::uint64_t size = 0;
    if (__builtin_mul_overflow(row, height, &size)) return CUDA_ERROR_OUT_OF_MEMORY;
    const auto result = allocate(context, out, size);
    if (result == CUDA_SUCCESS) *pitch = row;
    return result;
  });
}

// Since Pascal, managed memory is the host's until a kernel touches it, which none does here.
CUresult cuMemAllocManaged(CUdeviceptr* out, size_t size, unsigned int flags) {
  return in_context([&](Context& context) {
    if (flags != 1 && flags != 2) return CUDA_ERROR_INVALID_VALUE;
    if (context.device.gpu->model.compute_major < 6) return allocate(context, out, size, kManagedFlag);
    void* address = nullptr;
    const auto result = allocate_pages(context, &address, size, RangeKind::kManaged, kManagedFlag);
    if (result == CUDA_SUCCESS) *out = reinterpret_cast<CUdeviceptr>(address);
    return result;
  });
}

// Clients free also what belongs to a context that is not current.
CUresult cuMemFree_v2(CUdeviceptr address) {
  return with_driver([&](Driver& driver) {
    if (address == 0) return CUDA_SUCCESS;
    auto range = driver.memory.find(address);
    if (!range || range->address != address) return CUDA_ERROR_INVALID_VALUE;
    if (const auto owner = range->context.lock()) owner->queue.drain();
    switch (range->kind) {
      case RangeKind::kDevice: {
        const auto owner = range->context.lock();
        if (!owner || !driver.memory.take(address, RangeKind::kDevice)) return CUDA_ERROR_INVALID_VALUE;
        const std::scoped_lock lock(owner->mutex);
        if (owner->heap) owner->heap->free(address);
        return CUDA_SUCCESS;
      }
      case RangeKind::kManaged:
        return driver.memory.take(address, range->kind) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
      case RangeKind::kPool:
        if (!driver.memory.take(address, range->kind)) return CUDA_ERROR_INVALID_VALUE;
        range->pool->free(address, range->size);
        range->pool->give_back_unused();
        return CUDA_SUCCESS;
      case RangeKind::kGraph:
        return free_graph_memory(driver, address);
      default:
        return CUDA_ERROR_INVALID_VALUE;
    }
  });
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* size, CUdeviceptr address) {
  return with_driver([&](Driver& driver) {
    const auto range = driver.memory.find(address);
    if (!range) return CUDA_ERROR_NOT_FOUND;
    if (base != nullptr) *base = range->address;
    if (size != nullptr) *size = range->size;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemHostAlloc(void** out, size_t size, unsigned int flags) {
  return in_context([&](Context& context) {
    if ((flags & ~kHostFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
    return allocate_pages(context, out, size, RangeKind::kHost, flags);
  });
}
CUresult cuMemAllocHost_v2(void** out, size_t size) {
  return cuMemHostAlloc(out, size, 0);
}
CUresult cuMemFreeHost(void* address) {
  return free_host(address, RangeKind::kHost, CUDA_ERROR_INVALID_VALUE);
}

CUresult cuMemHostRegister_v2(void* address, size_t size, unsigned int flags) {
  return in_context([&](Context& context) {
    if (address == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
    if (context.driver.memory.find(reinterpret_cast<std::uint64_t>(address)))
      return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    return had(context, &address,
               {.address = reinterpret_cast<std::uint64_t>(address),
                .size = size,
                .kind = RangeKind::kRegistered,
                .flags = flags});
  });
}
CUresult cuMemHostUnregister(void* address) {
  return free_host(address, RangeKind::kRegistered, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* out, void* address, unsigned int flags) {
  return in_context([&](Context& context) {
    const auto range = context.driver.memory.find(reinterpret_cast<std::uint64_t>(address));
    if (!range || !range->on_host() || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    return answer(out, reinterpret_cast<CUdeviceptr>(address));
  });
}
CUresult cuMemHostGetFlags(unsigned int* flags, void* address) {
  return in_context([&](Context& context) {
    const auto range = context.driver.memory.find(reinterpret_cast<std::uint64_t>(address));
    if (!range || range->kind != RangeKind::kHost) return CUDA_ERROR_INVALID_VALUE;
    return answer(flags, range->flags);
  });
}

// Where managed memory had better be is of no use to know.
CUresult cuMemAdvise(CUdeviceptr address, size_t size, CUmem_advise, CUdevice) {
  return in_context([&](Context& context) {
    return context.driver.memory.holds(address, size) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}
CUresult cuMemAdvise_v2(CUdeviceptr address, size_t size, CUmem_advise advice, CUmemLocation location) {
  return cuMemAdvise(address, size, advice, location.id);
}
CUresult cuMemPrefetchAsync(CUdeviceptr address, size_t size, CUdevice, CUstream handle) {
  return on_stream(handle, [&](Context& context, Stream&) {
    const auto range = context.driver.memory.find(address);
    const bool managed = range && (range->flags & kManagedFlag) != 0 && !range->on_host();
    return managed && context.driver.memory.holds(address, size) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}
CUresult cuMemPrefetchAsync_v2(CUdeviceptr address, size_t size, CUmemLocation location, unsigned int,
                               CUstream stream) {
  return cuMemPrefetchAsync(address, size, location.id, stream);
}
DROVER_PER_THREAD(cuMemPrefetchAsync, (CUdeviceptr address, size_t size, CUdevice device, CUstream stream),
                  address, size, device, per_thread(stream))
DROVER_PER_THREAD(cuMemPrefetchAsync_v2,
                  (CUdeviceptr address, size_t size, CUmemLocation location, unsigned int flags,
                   CUstream stream),
                  address, size, location, flags, per_thread(stream))

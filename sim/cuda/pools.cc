// Pools as clients see them, and memory in the order of streams.

#include "sim/cuda/call.h"
#include "sim/cuda/graph.h"
#include "sim/cuda/pool.h"

using namespace drover::sim::cuda;

namespace {

CUresult allocate_from(Context& context, Stream& stream, std::shared_ptr<Pool> pool, CUdeviceptr* out,
                       std::uint64_t size) {
  if (out == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
  if (stream.capturing) {
    const auto address = reserve_graph_memory(context, size);
    if (address == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    *out = address;
    return submit(context, stream,
                  {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC, .address = address, .size = in_blocks(size)});
  }
  auto address = pool->allocate(size);
  if (address == 0) {  // what was freed may only have to be waited for
    context.synchronize();
    address = pool->allocate(size);
  }
  if (address == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = address;
  auto* const device = pool->on_host ? nullptr : &pool->device;
  context.driver.memory.add({.address = address,
                             .size = size,
                             .kind = RangeKind::kPool,
                             .device = device,
                             .context = context.weak_from_this(),
                             .pool = std::move(pool),
                             .id = context.driver.next_id()});
  return CUDA_SUCCESS;
}

std::shared_ptr<Pool> current_pool(Device& device) {
  const std::scoped_lock lock(device.mutex);
  return device.current_pool;
}

/// Runs `body(Driver&, Pool&)`.
template <typename Body>
CUresult with_pool(CUmemoryPool handle, Body body) {
  return with_driver([&](Driver& driver) {
    const auto pool = driver.pools.find(handle);
    return pool ? body(driver, *pool) : CUDA_ERROR_INVALID_VALUE;
  });
}

bool on_a_host(const CUmemLocation& location) {
  return location.type >= CU_MEM_LOCATION_TYPE_HOST &&
         location.type <= CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
}

/// Runs `body(CUdevice)` for memory of a device, which is what default pools are of here.
template <typename Body>
CUresult at_device(const CUmemLocation* location, int type, Body body) {
  if (location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (location->type != CU_MEM_LOCATION_TYPE_DEVICE || type != CU_MEM_ALLOCATION_TYPE_PINNED)
    return CUDA_ERROR_NOT_SUPPORTED;
  return body(location->id);
}

}  // namespace

CUresult cuMemAllocAsync(CUdeviceptr* out, size_t size, CUstream handle) {
  return on_stream(handle, [&](Context& context, Stream& stream) {
    return allocate_from(context, stream, current_pool(context.device), out, size);
  });
}
CUresult cuMemAllocFromPoolAsync(CUdeviceptr* out, size_t size, CUmemoryPool pool_of, CUstream handle) {
  return on_stream(handle, [&](Context& context, Stream& stream) {
    auto pool = context.driver.pools.find(pool_of);
    if (!pool) return CUDA_ERROR_INVALID_VALUE;
    return allocate_from(context, stream, std::move(pool), out, size);
  });
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream handle) {
  return on_stream(handle, [&](Context& context, Stream& stream) {
    auto& driver = context.driver;
    if (stream.capturing) {
      const auto range = driver.memory.find(address);
      if (!range || range->address != address || range->kind != RangeKind::kGraph)
        return CUDA_ERROR_INVALID_VALUE;
      return submit(context, stream, {.type = CU_GRAPH_NODE_TYPE_MEM_FREE, .address = address});
    }
    const auto range = driver.memory.find(address);
    if (!range || range->address != address) return CUDA_ERROR_INVALID_VALUE;
    if (range->kind == RangeKind::kGraph) return free_graph_memory(driver, address);
    if (!driver.memory.take(address, RangeKind::kPool)) return CUDA_ERROR_INVALID_VALUE;
    return submit(
        context, stream, CU_GRAPH_NODE_TYPE_MEM_FREE,
        [pool = range->pool, address, size = range->size](std::uint64_t) { pool->free(address, size); });
  });
}

DROVER_PER_THREAD(cuMemAllocAsync, (CUdeviceptr * out, size_t size, CUstream stream), out, size,
                  per_thread(stream))
DROVER_PER_THREAD(cuMemAllocFromPoolAsync,
                  (CUdeviceptr * out, size_t size, CUmemoryPool pool, CUstream stream), out, size, pool,
                  per_thread(stream))
DROVER_PER_THREAD(cuMemFreeAsync, (CUdeviceptr address, CUstream stream), address, per_thread(stream))

CUresult cuMemPoolCreate(CUmemoryPool* out, const CUmemPoolProps* properties) {
  return with_driver([&](Driver& driver) {
    if (out == nullptr || properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED || properties->handleTypes != 0)
      return CUDA_ERROR_NOT_SUPPORTED;
    const bool host = on_a_host(properties->location);
    if (!host && properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
    auto* const device = driver.device(host ? 0 : properties->location.id);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    *out = driver.pools.add(std::make_shared<Pool>(driver, *device, properties->maxSize, host));
    return CUDA_SUCCESS;
  });
}

CUresult cuMemPoolDestroy(CUmemoryPool handle) {
  return with_pool(handle, [&](Driver& driver, Pool& pool) {
    if (pool.device.default_pool.get() == &pool) return CUDA_ERROR_INVALID_VALUE;
    {
      const std::scoped_lock lock(pool.device.mutex);
      if (pool.device.current_pool.get() == &pool) pool.device.current_pool = pool.device.default_pool;
    }
    pool.trim_to(0);
    driver.pools.remove(handle);
    return CUDA_SUCCESS;
  });
}
CUresult cuMemPoolTrimTo(CUmemoryPool handle, size_t keep) {
  return with_pool(handle, [&](Driver&, Pool& pool) {
    pool.trim_to(keep);
    return CUDA_SUCCESS;
  });
}
CUresult cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  return with_pool(handle, [&](Driver&, Pool& pool) {
    return value == nullptr ? CUDA_ERROR_INVALID_VALUE : pool.get(attribute, value);
  });
}
CUresult cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  return with_pool(handle, [&](Driver&, Pool& pool) {
    return value == nullptr ? CUDA_ERROR_INVALID_VALUE : pool.set(attribute, value);
  });
}

// All GPUs of a machine may reach all memory of it, as kernels never do.
CUresult cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc* access, size_t count) {
  return with_pool(handle, [&](Driver&, Pool&) {
    return access == nullptr && count > 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  });
}
CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool handle, CUmemLocation* location) {
  return with_pool(handle, [&](Driver&, Pool&) {
    return location == nullptr ? CUDA_ERROR_INVALID_VALUE : answer(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  });
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type) {
  return at_device(location, type, [&](CUdevice device) { return cuDeviceGetDefaultMemPool(pool, device); });
}
CUresult cuMemGetMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type) {
  return at_device(location, type, [&](CUdevice device) { return cuDeviceGetMemPool(pool, device); });
}
CUresult cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool) {
  return at_device(location, type, [&](CUdevice device) { return cuDeviceSetMemPool(device, pool); });
}

// Addresses, and memory that is put there. Memory lives as long as somebody has its handle or it is mapped
// anywhere.

#include <algorithm>

#include "sim/cuda/call.h"

using namespace drover::sim::cuda;

namespace {

/// Memory without an address. Its count of handles is what clients hold; mappings hold it too.
struct Physical {
  Physical(Driver& driver_, Device* device_, const CUmemAllocationProp& properties_, std::uint64_t size_,
           std::uint64_t offset_)
      : driver(driver_), device(device_), properties(properties_), size(size_), offset(offset_) {}
  ~Physical() {
    driver.arena.give_back(offset, size);
    if (device != nullptr) driver.discharge(*device, size);
  }
  Physical(const Physical&) = delete;
  Physical& operator=(const Physical&) = delete;

  Driver& driver;
  Device* const device;  ///< null: of the host
  const CUmemAllocationProp properties;
  const std::uint64_t size;
  const std::uint64_t offset;  ///< in the arena
  std::atomic<int> handles{1};
};

Handles<Physical, CUmemGenericAllocationHandle>& physical_handles() {
  static auto& handles = *new Handles<Physical, CUmemGenericAllocationHandle>;
  return handles;
}

bool whole_blocks(std::uint64_t bytes) {
  return bytes != 0 && bytes % kBlock == 0;
}

CUresult check(const CUmemAllocationProp* properties) {
  if (properties == nullptr || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED)
    return CUDA_ERROR_INVALID_VALUE;
  return properties->requestedHandleTypes == 0 ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

/// Calls `visit(address, size)` for each mapping within, which must be mapped without gaps and end with it.
template <typename Visit>
CUresult for_each_mapping(Driver& driver, std::uint64_t address, std::uint64_t size, Visit visit) {
  std::vector<Range> ranges;
  for (auto at = address; at < address + size;) {
    auto range = driver.memory.find(at);
    if (!range || range->kind != RangeKind::kMapped || range->address != at ||
        range->size > address + size - at)
      return CUDA_ERROR_INVALID_VALUE;
    at += range->size;
    ranges.push_back(std::move(*range));
  }
  for (const auto& range : ranges)
    if (!visit(range)) return CUDA_ERROR_OPERATING_SYSTEM;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuMemAddressReserve(CUdeviceptr* out, size_t size, size_t alignment, CUdeviceptr wanted,
                             unsigned long long flags) {
  return in_context([&](Context& context) {
    const bool power = (alignment & (alignment - 1)) == 0;
    if (out == nullptr || !whole_blocks(size) || !power || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    const auto address = reserve_addresses(size, std::max<std::uint64_t>(alignment, kBlock), wanted);
    if (address == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    context.driver.memory.add({.address = address, .size = size, .kind = RangeKind::kReserved});
    return answer(out, address);
  });
}
CUresult cuMemAddressFree(CUdeviceptr address, size_t size) {
  return in_context([&](Context& context) {
    auto& memory = context.driver.memory;
    const auto reserved = memory.reserved(address);
    if (!reserved || reserved->address != address || reserved->size != size ||
        memory.any_mapped(address, size) || !memory.take(address, RangeKind::kReserved))
      return CUDA_ERROR_INVALID_VALUE;
    free_addresses(address, size);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp* properties,
                                       CUmemAllocationGranularity_flags) {
  return with_driver([&](Driver&) {
    const auto result = check(properties);
    return result == CUDA_SUCCESS ? answer(granularity, kBlock) : result;
  });
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* out, size_t size, const CUmemAllocationProp* properties,
                     unsigned long long flags) {
  return with_driver([&](Driver& driver) {
    if (const auto result = check(properties); result != CUDA_SUCCESS) return result;
    if (out == nullptr || !whole_blocks(size) || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    Device* device = nullptr;
    if (properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
      device = driver.device(properties->location.id);
      if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
      if (driver.lost(*device)) return CUDA_ERROR_DEVICE_UNAVAILABLE;
      if (!driver.charge(*device, size)) return CUDA_ERROR_OUT_OF_MEMORY;
    }
    const auto offset = driver.arena.take(size);
    if (!offset) {
      if (device != nullptr) driver.discharge(*device, size);
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *out = physical_handles().add(std::make_shared<Physical>(driver, device, *properties, size, *offset));
    return CUDA_SUCCESS;
  });
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  return with_driver([&](Driver&) {
    const auto physical = physical_handles().find(handle);
    if (!physical) return CUDA_ERROR_INVALID_VALUE;
    if (--physical->handles == 0) physical_handles().remove(handle);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* out, void* address) {
  return with_driver([&](Driver& driver) {
    const auto range = driver.memory.find(reinterpret_cast<std::uint64_t>(address));
    if (out == nullptr || !range || range->kind != RangeKind::kMapped) return CUDA_ERROR_INVALID_VALUE;
    auto physical = std::static_pointer_cast<Physical>(range->backing);
    *out = Handles<Physical, CUmemGenericAllocationHandle>::to_handle(physical.get());
    // Its last handle may have been released while it stayed mapped.
    if (physical->handles++ == 0) physical_handles().add(std::move(physical));
    return CUDA_SUCCESS;
  });
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* properties,
                                                CUmemGenericAllocationHandle handle) {
  return with_driver([&](Driver&) {
    const auto physical = physical_handles().find(handle);
    return physical ? answer(properties, physical->properties) : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuMemMap(CUdeviceptr address, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
  return with_driver([&](Driver& driver) {
    auto physical = physical_handles().find(handle);
    const auto reserved = driver.memory.reserved(address);
    if (!physical || !reserved || flags != 0 || !whole_blocks(size) || address % kBlock != 0 ||
        offset % kBlock != 0 || offset > physical->size || size > physical->size - offset ||
        size > reserved->address + reserved->size - address || driver.memory.any_mapped(address, size))
      return CUDA_ERROR_INVALID_VALUE;
    auto* const device = physical->device;
    // Nobody may touch it before cuMemSetAccess().
    driver.memory.add({.address = address,
                       .size = size,
                       .kind = RangeKind::kMapped,
                       .device = device,
                       .id = driver.next_id(),
                       .backing = std::move(physical),
                       .offset = offset});
    return CUDA_SUCCESS;
  });
}

CUresult cuMemUnmap(CUdeviceptr address, size_t size) {
  return with_driver([&](Driver& driver) {
    for (const auto& device : driver.devices()) {
      const std::scoped_lock lock(device->mutex);
      if (device->primary) device->primary->queue.drain();
    }
    return for_each_mapping(driver, address, size, [&](const Range& range) {
      return unmap_at(range.address, range.size) &&
             driver.memory.take(range.address, RangeKind::kMapped).has_value();
    });
  });
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t size, const CUmemAccessDesc* access, size_t count) {
  return with_driver([&](Driver& driver) {
    if (access == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
    const auto flags = static_cast<unsigned int>(access->flags);
    return for_each_mapping(driver, address, size, [&](const Range& range) {
      const auto& physical = static_cast<const Physical&>(*static_cast<Physical*>(range.backing.get()));
      const bool mapped = flags == 0 ? unmap_at(range.address, range.size)
                                     : map_at(range.address, range.size, driver.arena.descriptor(),
                                              physical.offset + range.offset);
      return mapped && driver.memory.change(range.address, RangeKind::kMapped, [&](Range& each) {
        each.access = flags;
        return true;
      });
    });
  });
}
CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr address) {
  return with_driver([&](Driver& driver) {
    const auto range = driver.memory.find(address);
    if (location == nullptr || !range || range->kind != RangeKind::kMapped) return CUDA_ERROR_INVALID_VALUE;
    return answer(flags, range->access);
  });
}

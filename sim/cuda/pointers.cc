// What CUDA knows of an address.

#include "sim/cuda/call.h"
#include "sim/cuda/pool.h"

using namespace drover::sim::cuda;

namespace {

enum : int {
  kContextOf = 1,
  kMemoryType = 2,
  kDevicePointer = 3,
  kHostPointer = 4,
  kSyncMemops = 6,
  kBufferId = 7,
  kIsManaged = 8,
  kDeviceOrdinal = 9,
  kIsIpcCapable = 10,
  kRangeStart = 11,
  kRangeSize = 12,
  kIsMapped = 13,
  kAllowedHandles = 14,
  kRdmaCapable = 15,
  kAccessFlags = 16,
  kPoolOf = 17,
  kMappingSize = 18,
  kMappingStart = 19,
  kBlockId = 20,
};

template <typename Value>
CUresult put(void* out, Value value) {
  return answer(static_cast<Value*>(out), value);
}

bool is_managed(const Range& range) {
  return !range.on_host() && (range.flags & 1) != 0;
}

CUresult tell_attribute(const Range& range, int attribute, CUdeviceptr address, void* out) {
  switch (attribute) {
    case kContextOf: {
      const auto context = range.context.lock();
      return context ? put(out, Handles<Context, CUcontext>::to_handle(context.get()))
                     : CUDA_ERROR_INVALID_VALUE;
    }
    case kMemoryType:
      return put(out, static_cast<unsigned int>(range.on_host() ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE));
    case kDevicePointer:
      return put(out, address);
    case kHostPointer:
      if (!range.on_host() && !is_managed(range)) return CUDA_ERROR_INVALID_VALUE;
      return put(out, reinterpret_cast<void*>(address));
    case kSyncMemops:
      return put(out, 1U);
    case kBufferId:
    case kBlockId:
      return put(out, static_cast<unsigned long long>(range.id));
    case kIsManaged:
      return put(out, is_managed(range) ? 1U : 0U);
    case kDeviceOrdinal:
      return put(out, range.device == nullptr ? -1 : range.device->ordinal);
    case kIsIpcCapable:
      return put(out, range.kind == RangeKind::kDevice);
    case kRangeStart:
    case kMappingStart:
      return put(out, static_cast<CUdeviceptr>(range.address));
    case kRangeSize:
    case kMappingSize:
      return put(out, static_cast<std::size_t>(range.size));
    case kIsMapped:
      return put(out, true);
    case kAllowedHandles:
      return put(out, 0ULL);
    case kRdmaCapable:
      return put(out, false);
    case kAccessFlags:
      return put(out, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    case kPoolOf:
      return put(out, Handles<Pool, CUmemoryPool>::to_handle(range.pool.get()));
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

/// What cuPointerGetAttributes() says where there is nothing to say.
void put_nothing(int attribute, void* out) {
  if (attribute == kDeviceOrdinal)
    *static_cast<int*>(out) = -2;
  else if (attribute == kIsMapped || attribute == kIsIpcCapable || attribute == kRdmaCapable)
    *static_cast<bool*>(out) = false;
  else if (attribute == kMemoryType || attribute == kSyncMemops || attribute == kIsManaged)
    *static_cast<unsigned int*>(out) = 0;
  else if (attribute == kAccessFlags)
    *static_cast<int*>(out) = 0;
  else
    *static_cast<std::uint64_t*>(out) = 0;
}

}  // namespace

CUresult cuPointerGetAttribute(void* out, CUpointer_attribute attribute, CUdeviceptr address) {
  return with_driver([&](Driver& driver) {
    const auto range = driver.memory.find(address);
    return range && out != nullptr ? tell_attribute(*range, attribute, address, out)
                                   : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute* attributes, void** out,
                                CUdeviceptr address) {
  return with_driver([&](Driver& driver) {
    if (attributes == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto range = driver.memory.find(address);
    for (unsigned int i = 0; i < count; ++i) {
      if (out[i] == nullptr || attributes[i] < 1) return CUDA_ERROR_INVALID_VALUE;
      if (!range || tell_attribute(*range, attributes[i], address, out[i]) != CUDA_SUCCESS)
        put_nothing(attributes[i], out[i]);
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuPointerSetAttribute(const void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  return with_driver([&](Driver& driver) {
    if (value == nullptr || attribute != kSyncMemops || !driver.memory.find(address))
      return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
  });
}

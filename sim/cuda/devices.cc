// Devices: what the profile says of them.

#include <cstdio>
#include <cstring>

#include "sim/cuda/attributes.h"
#include "sim/cuda/call.h"
#include "sim/cuda/pool.h"

using namespace drover::sim;
using namespace drover::sim::cuda;

namespace {

/// "GPU-6fcb514b-…" as bytes.
CUuuid bytes_of(const std::string& uuid) {
  CUuuid bytes{};
  std::size_t digits = 0;
  for (const char c : std::string_view(uuid).substr(std::min<std::size_t>(4, uuid.size()))) {
    if (c == '-' || digits == 2 * sizeof(bytes)) continue;
    const int value = c >= 'a' ? c - 'a' + 10 : c - '0';
    auto& byte = bytes.bytes[digits / 2];
    byte = static_cast<char>(byte | (value << (digits % 2 == 0 ? 4 : 0)));
    ++digits;
  }
  return bytes;
}

Gauge* graph_gauge(Device& device, int attribute) {
  switch (attribute) {
    case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
    case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
      return &device.graph_used;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
      return &device.graph_reserved;
    default:
      return nullptr;
  }
}

bool is_high(int attribute) {
  return attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH || attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH;
}

template <typename Out, typename Value>
CUresult tell(CUdevice ordinal, Out* out, Value value) {
  return with_device(ordinal, [&](Driver&, Device& device) { return answer(out, value(device)); });
}

}  // namespace

CUresult cuDeviceGetCount(int* count) {
  return with_driver([&](Driver& driver) { return answer(count, driver.devices().size()); });
}
CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  return tell(ordinal, device, [](const Device& found) { return found.ordinal; });
}

CUresult cuDeviceGetName(char* name, int length, CUdevice ordinal) {
  return with_device(ordinal, [&](Driver&, Device& device) {
    if (name == nullptr || length <= 0) return CUDA_ERROR_INVALID_VALUE;
    std::snprintf(name, static_cast<std::size_t>(length), "%s", device.gpu->model.name.c_str());
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice ordinal) {
  return tell(ordinal, uuid, [](const Device& device) { return bytes_of(device.gpu->uuid); });
}
DROVER_SAME_AS(cuDeviceGetUuid_v2, cuDeviceGetUuid);

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice ordinal) {
  return tell(ordinal, bytes, [](const Device& device) { return device.total_bytes(); });
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice ordinal) {
  return with_device(ordinal, [&](Driver&, Device& device) {
    const auto found = device_attribute(*device.gpu, attribute);
    return found ? answer(value, *found) : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice ordinal) {
  return with_device(ordinal, [&](Driver&, Device& device) {
    if (major == nullptr || minor == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *major = device.gpu->model.compute_major;
    *minor = device.gpu->model.compute_minor;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetProperties(CUdevprop* properties, CUdevice ordinal) {
  return tell(ordinal, properties, [](const Device& device) {
    const auto of = [&](int attribute) { return device_attribute(*device.gpu, attribute).value_or(0); };
    return CUdevprop{
        of(1), {of(2), of(3), of(4)}, {of(5), of(6), of(7)}, of(8), of(9), of(10), of(11), of(12), of(13),
        of(14)};
  });
}

CUresult cuDeviceGetPCIBusId(char* text, int length, CUdevice ordinal) {
  return with_device(ordinal, [&](Driver&, Device& device) {
    const auto address = to_string(device.gpu->pci, 4);
    if (text == nullptr || length <= static_cast<int>(address.size())) return CUDA_ERROR_INVALID_VALUE;
    std::strcpy(text, address.c_str());
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetByPCIBusId(CUdevice* device, const char* text) {
  return with_driver([&](Driver& driver) {
    if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto address = parse_pci_address(text);
    for (const auto& each : driver.devices())
      if (address && each->gpu->pci == *address) return answer(device, each->ordinal);
    return CUDA_ERROR_INVALID_DEVICE;
  });
}

// GPUs of one machine reach each other, as kernels never do.
CUresult cuDeviceCanAccessPeer(int* can, CUdevice ordinal, CUdevice peer) {
  return with_device(peer, [&](Driver&, Device&) {
    return tell(ordinal, can, [&](const Device& device) { return device.ordinal != peer; });
  });
}
CUresult cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice ordinal,
                                 CUdevice peer) {
  constexpr int kAccessSupported = 2;
  return with_device(peer, [&](Driver&, Device&) {
    if (ordinal == peer || attribute < 1 || attribute > 4) return CUDA_ERROR_INVALID_VALUE;
    return tell(ordinal, value, [&](const Device&) { return attribute == kAccessSupported; });
  });
}
CUresult cuDeviceGetExecAffinitySupport(int* value, CUexecAffinityType, CUdevice ordinal) {
  return tell(ordinal, value, [](const Device&) { return 0; });
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice ordinal) {
  return tell(ordinal, pool, [](const Device& device) {
    return Handles<Pool, CUmemoryPool>::to_handle(device.default_pool.get());
  });
}
CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice ordinal) {
  return tell(ordinal, pool, [](Device& device) {
    const std::scoped_lock lock(device.mutex);
    return Handles<Pool, CUmemoryPool>::to_handle(device.current_pool.get());
  });
}
CUresult cuDeviceSetMemPool(CUdevice ordinal, CUmemoryPool handle) {
  return with_device(ordinal, [&](Driver& driver, Device& device) {
    auto pool = driver.pools.find(handle);
    if (!pool || &pool->device != &device) return CUDA_ERROR_INVALID_VALUE;
    const std::scoped_lock lock(device.mutex);
    device.current_pool = std::move(pool);
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice ordinal, CUgraphMem_attribute attribute, void* value) {
  return with_device(ordinal, [&](Driver&, Device& device) {
    const std::scoped_lock lock(device.mutex);
    const auto* const gauge = graph_gauge(device, attribute);
    if (gauge == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return answer(static_cast<cuuint64_t*>(value), is_high(attribute) ? gauge->high : gauge->now);
  });
}
CUresult cuDeviceSetGraphMemAttribute(CUdevice ordinal, CUgraphMem_attribute attribute, void* value) {
  return with_device(ordinal, [&](Driver&, Device& device) {
    const std::scoped_lock lock(device.mutex);
    auto* const gauge = graph_gauge(device, attribute);
    if (gauge == nullptr || !is_high(attribute) || value == nullptr || *static_cast<cuuint64_t*>(value) != 0)
      return CUDA_ERROR_INVALID_VALUE;
    gauge->high = gauge->now;
    return CUDA_SUCCESS;
  });
}
CUresult cuDeviceGraphMemTrim(CUdevice ordinal) {
  return with_device(ordinal, [](Driver& driver, Device& device) {
    const std::scoped_lock lock(device.mutex);
    const auto keep = in_blocks(device.graph_used.now);
    if (keep < device.graph_reserved.now) {
      driver.discharge(device, device.graph_reserved.now - keep);
      device.graph_reserved.set(keep);
    }
    return CUDA_SUCCESS;
  });
}

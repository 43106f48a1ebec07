// Copies and fills, which really move bytes.

#include <algorithm>
#include <cstring>

#include "sim/cuda/array.h"
#include "sim/cuda/call.h"
#include "sim/cuda/copy.h"
#include "sim/cuda/graph.h"

namespace drover::sim::cuda {
namespace {

/// One side of a copy as the structure says it.
struct AskedSide {
  std::uint64_t x = 0;
  std::uint64_t y = 0;
  std::uint64_t z = 0;
  int type = 0;
  std::uint64_t host = 0;
  CUdeviceptr device = 0;
  CUarray array = nullptr;
  std::uint64_t pitch = 0;
  std::uint64_t height = 0;
};

CUresult check_side(Driver& driver, const AskedSide& asked, const BoxCopy& box, BoxCopy::Side& side) {
  if (asked.x > kMostBytes || asked.y > kMostBytes || asked.z > kMostBytes || asked.pitch > kMostBytes)
    return CUDA_ERROR_INVALID_VALUE;
  if (asked.type == CU_MEMORYTYPE_ARRAY) {
    const auto array = driver.arrays.find(asked.array);
    if (!array) return CUDA_ERROR_INVALID_HANDLE;
    if (asked.x + box.width > array->shape.Width * array->element || asked.y + box.height > array->rows() ||
        asked.z + box.depth > array->layers())
      return CUDA_ERROR_INVALID_VALUE;
    side.row = array->pitch;
    side.layer = array->pitch * array->rows();
    side.at = reinterpret_cast<char*>(array->address + asked.x + asked.y * side.row + asked.z * side.layer);
    return CUDA_SUCCESS;
  }
  side.row = asked.pitch == 0 ? asked.x + box.width : asked.pitch;
  if ((box.height > 1 || box.depth > 1) && side.row < asked.x + box.width) return CUDA_ERROR_INVALID_VALUE;
  side.layer = side.row * std::max(asked.height, box.height);
  const auto base = asked.type == CU_MEMORYTYPE_HOST ? asked.host : asked.device;
  const auto begin = base + asked.x + asked.y * side.row + asked.z * side.layer;
  side.at = reinterpret_cast<char*>(begin);
  std::uint64_t size = 0;
  if (__builtin_mul_overflow(box.depth - 1, side.layer, &size) ||
      __builtin_add_overflow(size, (box.height - 1) * side.row + box.width, &size))
    return CUDA_ERROR_INVALID_VALUE;
  const bool known = driver.memory.holds(begin, size);
  // With unified addresses, what CUDA does not know is the host's.
  if (asked.type == CU_MEMORYTYPE_DEVICE && !known) return CUDA_ERROR_INVALID_VALUE;
  const bool typed = asked.type == CU_MEMORYTYPE_HOST || asked.type == CU_MEMORYTYPE_DEVICE;
  return begin != 0 && (typed || asked.type == CU_MEMORYTYPE_UNIFIED) ? CUDA_SUCCESS
                                                                      : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

void BoxCopy::run() const {
  for (std::uint64_t z = 0; z < depth; ++z) {
    if (from.row == width && to.row == width) {
      std::memmove(to.at + z * to.layer, from.at + z * from.layer, width * height);
      continue;
    }
    for (std::uint64_t y = 0; y < height; ++y)
      std::memmove(to.at + z * to.layer + y * to.row, from.at + z * from.layer + y * from.row, width);
  }
}

CUresult check_copy(Driver& driver, const CUDA_MEMCPY3D& asked, BoxCopy& copy) {
  copy.width = asked.WidthInBytes;
  copy.height = asked.Height;
  copy.depth = asked.Depth;
  if (copy.width == 0 || copy.height == 0 || copy.depth == 0) {
    copy = {};
    return CUDA_SUCCESS;
  }
  if (copy.width > kMostBytes || copy.height > kMostBytes || copy.depth > kMostBytes)
    return CUDA_ERROR_INVALID_VALUE;
  const AskedSide from{asked.srcXInBytes,
                       asked.srcY,
                       asked.srcZ,
                       asked.srcMemoryType,
                       reinterpret_cast<std::uint64_t>(asked.srcHost),
                       asked.srcDevice,
                       asked.srcArray,
                       asked.srcPitch,
                       asked.srcHeight};
  const AskedSide to{asked.dstXInBytes,
                     asked.dstY,
                     asked.dstZ,
                     asked.dstMemoryType,
                     reinterpret_cast<std::uint64_t>(asked.dstHost),
                     asked.dstDevice,
                     asked.dstArray,
                     asked.dstPitch,
                     asked.dstHeight};
  const auto result = check_side(driver, from, copy, copy.from);
  return result == CUDA_SUCCESS ? check_side(driver, to, copy, copy.to) : result;
}

void BoxFill::run() const {
  for (std::uint64_t y = 0; y < height; ++y) {
    char* const row = at + y * pitch;
    if (element == 1) {
      std::memset(row, static_cast<int>(value), width);
      continue;
    }
    for (std::uint64_t x = 0; x < width; ++x) std::memcpy(row + x * element, &value, element);
  }
}

CUresult check_fill(Driver& driver, const CUDA_MEMSET_NODE_PARAMS& asked, BoxFill& fill) {
  if (asked.elementSize != 1 && asked.elementSize != 2 && asked.elementSize != 4)
    return CUDA_ERROR_INVALID_VALUE;
  if (asked.dst % asked.elementSize != 0 || asked.width > kMostBytes || asked.height > kMostBytes)
    return CUDA_ERROR_INVALID_VALUE;
  fill = {.at = reinterpret_cast<char*>(asked.dst),
          .pitch = asked.pitch,
          .value = asked.value,
          .element = asked.elementSize,
          .width = asked.width,
          .height = asked.height};
  if (asked.width == 0 || asked.height == 0) {
    fill.height = 0;
    return CUDA_SUCCESS;
  }
  std::uint64_t size = 0;
  if (__builtin_mul_overflow(asked.height - 1, asked.pitch, &size) ||
      __builtin_add_overflow(size, asked.width * asked.elementSize, &size))
    return CUDA_ERROR_INVALID_VALUE;
  return driver.memory.holds(asked.dst, size) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace drover::sim::cuda

using namespace drover::sim::cuda;

namespace {

/// Does it in the order of the stream; without one, also waits for it.
CUresult in_order(CUstream handle, bool wait, const auto& check, CUgraphNodeType type) {
  return on_stream(handle, [&](Context& context, Stream& stream) {
    auto job = check(context.driver);
    if (job.result != CUDA_SUCCESS) return job.result;
    const auto result = submit(context, stream, type, [what = job.what](std::uint64_t) { what.run(); });
    if (result == CUDA_SUCCESS && wait) context.queue.wait(stream.last);
    return result;
  });
}

struct CopyJob {
  BoxCopy what;
  CUresult result = CUDA_SUCCESS;
};
struct FillJob {
  BoxFill what;
  CUresult result = CUDA_SUCCESS;
};

CUresult copy_box(const CUDA_MEMCPY3D* asked, CUstream handle, bool wait) {
  const auto check = [&](Driver& driver) {
    CopyJob job;
    job.result = asked == nullptr ? CUDA_ERROR_INVALID_VALUE : check_copy(driver, *asked, job.what);
    return job;
  };
  return in_order(handle, wait, check, CU_GRAPH_NODE_TYPE_MEMCPY);
}

CUresult copy_line(int to_type, std::uint64_t to, int from_type, std::uint64_t from, std::uint64_t size,
                   CUstream handle, bool wait) {
  CUDA_MEMCPY3D asked{};
  asked.srcMemoryType = from_type;
  asked.dstMemoryType = to_type;
  asked.srcHost = reinterpret_cast<const void*>(from);
  asked.srcDevice = from;
  asked.dstHost = reinterpret_cast<void*>(to);
  asked.dstDevice = to;
  asked.WidthInBytes = size;
  asked.Height = asked.Depth = 1;
  return copy_box(&asked, handle, wait);
}

CUresult copy_rectangle(const CUDA_MEMCPY2D* flat, CUstream handle, bool wait) {
  if (flat == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUDA_MEMCPY3D asked{};
  asked.srcXInBytes = flat->srcXInBytes;
  asked.srcY = flat->srcY;
  asked.srcMemoryType = flat->srcMemoryType;
  asked.srcHost = flat->srcHost;
  asked.srcDevice = flat->srcDevice;
  asked.srcArray = flat->srcArray;
  asked.srcPitch = flat->srcPitch;
  asked.dstXInBytes = flat->dstXInBytes;
  asked.dstY = flat->dstY;
  asked.dstMemoryType = flat->dstMemoryType;
  asked.dstHost = flat->dstHost;
  asked.dstDevice = flat->dstDevice;
  asked.dstArray = flat->dstArray;
  asked.dstPitch = flat->dstPitch;
  asked.WidthInBytes = flat->WidthInBytes;
  asked.Height = flat->Height;
  asked.Depth = 1;
  return copy_box(&asked, handle, wait);
}

CUresult fill_rectangle(CUdeviceptr at, std::uint64_t pitch, unsigned int value, unsigned int element,
                        std::uint64_t width, std::uint64_t height, CUstream handle, bool wait) {
  const CUDA_MEMSET_NODE_PARAMS asked{at, pitch, value, element, width, height};
  const auto check = [&](Driver& driver) {
    FillJob job;
    job.result = check_fill(driver, asked, job.what);
    return job;
  };
  return in_order(handle, wait, check, CU_GRAPH_NODE_TYPE_MEMSET);
}

std::uint64_t address_of(const void* host) {
  return reinterpret_cast<std::uint64_t>(host);
}

constexpr int kHostSide = CU_MEMORYTYPE_HOST;
constexpr int kDeviceSide = CU_MEMORYTYPE_DEVICE;
constexpr int kAnySide = CU_MEMORYTYPE_UNIFIED;

}  // namespace

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t size) {
  return copy_line(kAnySide, to, kAnySide, from, size, nullptr, true);
}
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t size) {
  return copy_line(kDeviceSide, to, kHostSide, address_of(from), size, nullptr, true);
}
CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t size) {
  return copy_line(kHostSide, address_of(to), kDeviceSide, from, size, nullptr, true);
}
CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t size) {
  return copy_line(kDeviceSide, to, kDeviceSide, from, size, nullptr, true);
}
CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t size) {
  return copy_line(kDeviceSide, to, kDeviceSide, from, size, nullptr, true);
}
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
  return copy_line(kAnySide, to, kAnySide, from, size, stream, false);
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t size, CUstream stream) {
  return copy_line(kDeviceSide, to, kHostSide, address_of(from), size, stream, false);
}
CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t size, CUstream stream) {
  return copy_line(kHostSide, address_of(to), kDeviceSide, from, size, stream, false);
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
  return copy_line(kDeviceSide, to, kDeviceSide, from, size, stream, false);
}
CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t size,
                           CUstream stream) {
  return copy_line(kDeviceSide, to, kDeviceSide, from, size, stream, false);
}
CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* copy) {
  return copy_rectangle(copy, nullptr, true);
}
CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* copy) {
  return copy_rectangle(copy, nullptr, true);
}
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* copy, CUstream stream) {
  return copy_rectangle(copy, stream, false);
}
CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D* copy) {
  return copy_box(copy, nullptr, true);
}
CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* copy, CUstream stream) {
  return copy_box(copy, stream, false);
}
DROVER_SAME_PER_THREAD(cuMemcpy);
DROVER_SAME_PER_THREAD(cuMemcpyHtoD_v2);
DROVER_SAME_PER_THREAD(cuMemcpyDtoH_v2);
DROVER_SAME_PER_THREAD(cuMemcpyDtoD_v2);
DROVER_SAME_PER_THREAD(cuMemcpyPeer);
DROVER_SAME_PER_THREAD(cuMemcpy2D_v2);
DROVER_SAME_PER_THREAD(cuMemcpy2DUnaligned_v2);
DROVER_SAME_PER_THREAD(cuMemcpy3D_v2);
DROVER_PER_THREAD(cuMemcpyAsync, (CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream), to, from,
                  size, per_thread(stream))
DROVER_PER_THREAD(cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void* from, size_t size, CUstream stream), to,
                  from, size, per_thread(stream))
DROVER_PER_THREAD(cuMemcpyDtoHAsync_v2, (void* to, CUdeviceptr from, size_t size, CUstream stream), to, from,
                  size, per_thread(stream))
DROVER_PER_THREAD(cuMemcpyDtoDAsync_v2, (CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream), to,
                  from, size, per_thread(stream))
DROVER_PER_THREAD(cuMemcpyPeerAsync,
                  (CUdeviceptr to, CUcontext owner, CUdeviceptr from, CUcontext other, size_t size,
                   CUstream stream),
                  to, owner, from, other, size, per_thread(stream))
DROVER_PER_THREAD(cuMemcpy2DAsync_v2, (const CUDA_MEMCPY2D* copy, CUstream stream), copy, per_thread(stream))
DROVER_PER_THREAD(cuMemcpy3DAsync_v2, (const CUDA_MEMCPY3D* copy, CUstream stream), copy, per_thread(stream))

#define FILLS(bits, type)                                                                                    \
  CUresult cuMemsetD##bits##_v2(CUdeviceptr at, type value, size_t count) {                                  \
    return fill_rectangle(at, 0, value, (bits) / 8, count, 1, nullptr, true);                                \
  }                                                                                                          \
  CUresult cuMemsetD##bits##Async(CUdeviceptr at, type value, size_t count, CUstream stream) {               \
    return fill_rectangle(at, 0, value, (bits) / 8, count, 1, stream, false);                                \
  }                                                                                                          \
  CUresult cuMemsetD2D##bits##_v2(CUdeviceptr at, size_t pitch, type value, size_t width, size_t height) {   \
    return fill_rectangle(at, pitch, value, (bits) / 8, width, height, nullptr, true);                       \
  }                                                                                                          \
  CUresult cuMemsetD2D##bits##Async(CUdeviceptr at, size_t pitch, type value, size_t width, size_t height,   \
                                    CUstream stream) {                                                       \
    return fill_rectangle(at, pitch, value, (bits) / 8, width, height, stream, false);                       \
  }                                                                                                          \
  DROVER_SAME_PER_THREAD(cuMemsetD##bits##_v2);                                                              \
  DROVER_SAME_PER_THREAD(cuMemsetD2D##bits##_v2);                                                            \
  DROVER_PER_THREAD(cuMemsetD##bits##Async, (CUdeviceptr at, type value, size_t count, CUstream stream), at, \
                    value, count, per_thread(stream))                                                        \
  DROVER_PER_THREAD(                                                                                         \
      cuMemsetD2D##bits##Async,                                                                              \
      (CUdeviceptr at, size_t pitch, type value, size_t width, size_t height, CUstream stream), at, pitch,   \
      value, width, height, per_thread(stream))
FILLS(8, unsigned char)
FILLS(16, unsigned short)
FILLS(32, unsigned int)
#undef FILLS

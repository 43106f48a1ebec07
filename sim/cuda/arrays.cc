// Arrays and mipmapped arrays.

#include <algorithm>

#include "sim/cuda/array.h"
#include "sim/cuda/call.h"

using namespace drover::sim::cuda;

namespace {

constexpr std::uint64_t kRowAlignment = 32;
constexpr std::uint64_t kArrayAlignment = 64 << 10;
constexpr std::uint64_t kMostElements = 1 << 24;  ///< in one direction

/// Bytes of one channel, or 0 for formats that are not known here.
std::uint64_t channel_bytes(int format) {
  switch (format) {
    case 1:  // UNSIGNED_INT8
    case 8:  // SIGNED_INT8
      return 1;
    case 2:   // UNSIGNED_INT16
    case 9:   // SIGNED_INT16
    case 16:  // HALF
      return 2;
    case 3:   // UNSIGNED_INT32
    case 10:  // SIGNED_INT32
    case 32:  // FLOAT
      return 4;
    default:
      return 0;
  }
}

/// With all but its memory; null when there is no such shape.
std::shared_ptr<Array> shaped(const CUDA_ARRAY3D_DESCRIPTOR& shape) {
  const auto channel = channel_bytes(shape.Format);
  const auto channels = shape.NumChannels;
  if (channel == 0 || (channels != 1 && channels != 2 && channels != 4) || shape.Width == 0 ||
      shape.Width > kMostElements || shape.Height > kMostElements || shape.Depth > kMostElements ||
      (shape.Depth != 0 && shape.Height == 0 && (shape.Flags & 1) == 0))
    return nullptr;
  auto array = std::make_shared<Array>();
  array->shape = shape;
  array->element = channel * channels;
  array->pitch = (shape.Width * array->element + kRowAlignment - 1) / kRowAlignment * kRowAlignment;
  std::uint64_t rows = 0;
  if (__builtin_mul_overflow(array->rows() * array->layers(), array->pitch, &rows) || rows > UINT64_MAX / 2)
    return nullptr;
  array->size = (rows + kArrayAlignment - 1) / kArrayAlignment * kArrayAlignment;
  return array;
}

CUresult give_memory(Context& context, Array& array) {
  if (array.size > kMostBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  {
    const std::scoped_lock lock(context.mutex);
    array.address = context.heap->allocate(array.size);
  }
  if (array.address == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  array.context = context.weak_from_this();
  array.device = &context.device;
  return CUDA_SUCCESS;
}

void take_memory(const Array& array) {
  const auto context = array.context.lock();
  if (!context) return;
  context->queue.drain();
  const std::scoped_lock lock(context->mutex);
  if (context->heap) context->heap->free(array.address);
}

CUresult create_array(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR& shape) {
  return in_context([&](Context& context) {
    auto array = shaped(shape);
    if (out == nullptr || !array) return CUDA_ERROR_INVALID_VALUE;
    if (const auto result = give_memory(context, *array); result != CUDA_SUCCESS) return result;
    *out = context.driver.arrays.add(std::move(array));
    return CUDA_SUCCESS;
  });
}

/// Runs `body(const Array&)`.
template <typename Body>
CUresult with_array(CUarray handle, Body body) {
  return with_driver([&](Driver& driver) {
    const auto array = driver.arrays.find(handle);
    return array ? body(*array) : CUDA_ERROR_INVALID_HANDLE;
  });
}

CUDA_ARRAY_MEMORY_REQUIREMENTS requirements(std::uint64_t size) {
  return {size, kArrayAlignment, {}};
}

}  // namespace

CUresult cuArrayCreate_v2(CUarray* out, const CUDA_ARRAY_DESCRIPTOR* shape) {
  if (shape == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return create_array(out, {shape->Width, shape->Height, 0, shape->Format, shape->NumChannels, 0});
}
CUresult cuArray3DCreate_v2(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR* shape) {
  return shape == nullptr ? CUDA_ERROR_INVALID_VALUE : create_array(out, *shape);
}

CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR* out, CUarray handle) {
  return with_array(handle, [&](const Array& array) {
    const auto& shape = array.shape;
    return answer(out, CUDA_ARRAY_DESCRIPTOR{shape.Width, shape.Height, shape.Format, shape.NumChannels});
  });
}
CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR* out, CUarray handle) {
  return with_array(handle, [&](const Array& array) { return answer(out, array.shape); });
}
CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS* out, CUarray handle, CUdevice) {
  return with_array(handle, [&](const Array& array) { return answer(out, requirements(array.size)); });
}

CUresult cuArrayDestroy(CUarray handle) {
  return with_driver([&](Driver& driver) {
    const auto array = driver.arrays.remove(handle);
    if (!array) return CUDA_ERROR_INVALID_HANDLE;
    take_memory(*array);
    return CUDA_SUCCESS;
  });
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray* out, const CUDA_ARRAY3D_DESCRIPTOR* shape,
                                unsigned int levels) {
  return in_context([&](Context& context) {
    if (out == nullptr || shape == nullptr || levels == 0 || levels > 32) return CUDA_ERROR_INVALID_VALUE;
    auto mipmap = std::make_shared<Mipmap>();
    auto smaller = *shape;
    for (unsigned int level = 0; level < levels; ++level) {
      auto array = shaped(smaller);
      const auto result = array ? give_memory(context, *array) : CUDA_ERROR_INVALID_VALUE;
      if (result != CUDA_SUCCESS) {
        for (const auto& had : mipmap->levels) take_memory(*had);
        return result;
      }
      mipmap->size += array->size;
      mipmap->levels.push_back(std::move(array));
      for (auto* extent : {&smaller.Width, &smaller.Height, &smaller.Depth})
        if (*extent > 1) *extent /= 2;
    }
    for (const auto& level : mipmap->levels) context.driver.arrays.add(level);
    *out = context.driver.mipmaps.add(std::move(mipmap));
    return CUDA_SUCCESS;
  });
}

CUresult cuMipmappedArrayGetLevel(CUarray* out, CUmipmappedArray handle, unsigned int level) {
  return with_driver([&](Driver& driver) {
    const auto mipmap = driver.mipmaps.find(handle);
    if (!mipmap) return CUDA_ERROR_INVALID_HANDLE;
    if (level >= mipmap->levels.size()) return CUDA_ERROR_INVALID_VALUE;
    return answer(out, Handles<Array, CUarray>::to_handle(mipmap->levels[level].get()));
  });
}
CUresult cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS* out, CUmipmappedArray handle,
                                               CUdevice) {
  return with_driver([&](Driver& driver) {
    const auto mipmap = driver.mipmaps.find(handle);
    return mipmap ? answer(out, requirements(mipmap->size)) : CUDA_ERROR_INVALID_HANDLE;
  });
}
CUresult cuMipmappedArrayDestroy(CUmipmappedArray handle) {
  return with_driver([&](Driver& driver) {
    const auto mipmap = driver.mipmaps.remove(handle);
    if (!mipmap) return CUDA_ERROR_INVALID_HANDLE;
    for (const auto& level : mipmap->levels) {
      driver.arrays.remove(Handles<Array, CUarray>::to_handle(level.get()));
      take_memory(*level);
    }
    return CUDA_SUCCESS;
  });
}

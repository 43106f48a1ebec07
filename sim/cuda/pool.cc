#include "sim/cuda/pool.h"

#include <algorithm>

namespace drover::sim::cuda {
namespace {

/// A pool grows by so much at once, where there is room.
constexpr std::uint64_t kStep = 32 << 20;
constexpr std::uint64_t kPiece = 512;

std::uint64_t in_pieces(std::uint64_t size) {
  return (size + kPiece - 1) / kPiece * kPiece;
}

/// The pools' memory is charged by what they have reserved, and not block by block.
Heap::Account no_account() {
  return {[](std::uint64_t) { return true; }, [](std::uint64_t) {}};
}

}  // namespace

Pool::Pool(Driver& driver_, Device& device_, std::uint64_t limit_, bool on_host_)
    : driver(driver_),
      device(device_),
      limit(limit_),
      on_host(on_host_),
      heap_(driver_.arena, no_account()) {}

Pool::~Pool() {
  if (!on_host) driver.discharge(device, reserved_.now);
}

bool Pool::grow_to(std::uint64_t bytes) {
  if (bytes <= reserved_.now) return true;
  for (const auto step : {kStep, kBlock}) {
    const auto whole = (bytes + step - 1) / step * step;
    if (limit != 0 && whole > std::max(in_blocks(limit), bytes)) continue;
    if (!on_host && !driver.charge(device, whole - reserved_.now)) continue;
    reserved_.set(whole);
    return true;
  }
  return false;
}

std::uint64_t Pool::allocate(std::uint64_t size) {
  const std::scoped_lock lock(mutex_);
  const auto bytes = used_.now + in_pieces(size);
  if (size > device.total_bytes() * 16 || (limit != 0 && bytes > limit)) return 0;
  if (!grow_to(bytes)) return 0;
  const auto address = heap_.allocate(size);
  if (address != 0) used_.set(bytes);
  return address;
}

void Pool::free(std::uint64_t address, std::uint64_t size) {
  const std::scoped_lock lock(mutex_);
  heap_.free(address);
  used_.set(used_.now - std::min(used_.now, in_pieces(size)));
}

void Pool::trim_to(std::uint64_t keep) {
  const std::scoped_lock lock(mutex_);
  const auto needed = std::max(in_blocks(used_.now), keep);
  if (needed >= reserved_.now) return;
  if (!on_host) driver.discharge(device, reserved_.now - needed);
  reserved_.set(needed);
}

void Pool::give_back_unused() {
  std::uint64_t keep = 0;
  {
    const std::scoped_lock lock(mutex_);
    const auto steps = (used_.now + kStep - 1) / kStep * kStep;
    keep = std::max(threshold_, steps);
  }
  trim_to(keep);
}

CUresult Pool::get(int attribute, void* value) {
  const std::scoped_lock lock(mutex_);
  auto* const number = static_cast<cuuint64_t*>(value);
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      *static_cast<int*>(value) = reuse_[attribute - 1];
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      *number = threshold_;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
      *number = reserved_.now;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      *number = reserved_.high;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      *number = used_.now;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      *number = used_.high;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult Pool::set(int attribute, const void* value) {
  const std::scoped_lock lock(mutex_);
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      reuse_[attribute - 1] = *static_cast<const int*>(value) != 0;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      threshold_ = *static_cast<const cuuint64_t*>(value);
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: {
      if (*static_cast<const cuuint64_t*>(value) != 0) return CUDA_ERROR_INVALID_VALUE;
      auto& gauge = attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH ? used_ : reserved_;
      gauge.high = gauge.now;
      return CUDA_SUCCESS;
    }
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

void give_back_unused(Driver& driver, Device& device) {
  driver.pools.for_each([&](Pool& pool) {
    if (&pool.device == &device) pool.give_back_unused();
  });
}

}  // namespace drover::sim::cuda

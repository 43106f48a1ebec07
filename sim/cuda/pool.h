#pragma once

// Pools: memory that is taken and freed in the order of a stream. What a pool has taken of the GPU is not
// what is in use of it: it grows in steps, and shrinks when work is waited for. Thread safe.

#include <cstdint>
#include <memory>
#include <mutex>

#include "gpu/cuda_abi.h"
#include "sim/cuda/driver.h"
#include "sim/cuda/heap.h"

namespace drover::sim::cuda {

struct Pool : std::enable_shared_from_this<Pool> {
  /// A `limit` of 0 is none. One on the host takes nothing of a GPU.
  Pool(Driver& driver_, Device& device_, std::uint64_t limit_, bool on_host_ = false);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// An address, or 0 when there is no room.
  std::uint64_t allocate(std::uint64_t size);
  void free(std::uint64_t address, std::uint64_t size);
  /// Gives back what is not in use beyond so much.
  void trim_to(std::uint64_t keep);
  /// The same for what its owner wants it to keep.
  void give_back_unused();
  CUresult get(int attribute, void* value);
  CUresult set(int attribute, const void* value);

  Driver& driver;
  Device& device;
  const std::uint64_t limit;
  const bool on_host;

 private:
  bool grow_to(std::uint64_t bytes);

  std::mutex mutex_;
  Heap heap_;
  Gauge used_;
  Gauge reserved_;
  std::uint64_t threshold_ = 0;
  int reuse_[3] = {1, 1, 1};
};

/// Of all pools of a device.
void give_back_unused(Driver& driver, Device& device);

}  // namespace drover::sim::cuda

#pragma once

// Copies of boxes of bytes, wherever they are.

#include "sim/cuda/context.h"

namespace drover::sim::cuda {

/// A copy that has been checked: addresses are the process's own.
struct BoxCopy {
  struct Side {
    char* at = nullptr;
    std::uint64_t row = 0;    ///< bytes from a row to the next
    std::uint64_t layer = 0;  ///< bytes from a layer to the next
  };
  Side from;
  Side to;
  std::uint64_t width = 0;  ///< bytes
  std::uint64_t height = 0;
  std::uint64_t depth = 0;

  void run() const;
};

/// CUDA_SUCCESS, or why there is no such copy.
CUresult check_copy(Driver& driver, const CUDA_MEMCPY3D& asked, BoxCopy& copy);

/// Memory that is filled with values of 1, 2 or 4 bytes.
struct BoxFill {
  char* at = nullptr;
  std::uint64_t pitch = 0;
  std::uint32_t value = 0;
  std::uint32_t element = 1;
  std::uint64_t width = 0;  ///< elements
  std::uint64_t height = 1;

  void run() const;
};

CUresult check_fill(Driver& driver, const CUDA_MEMSET_NODE_PARAMS& asked, BoxFill& fill);

}  // namespace drover::sim::cuda

#pragma once

// Arrays: images in an order of the card's own. Here it is rows after rows, of the rows' length rounded up.

#include <memory>
#include <vector>

#include "sim/cuda/context.h"

namespace drover::sim::cuda {

struct Array {
  CUDA_ARRAY3D_DESCRIPTOR shape{};
  std::uint64_t element = 0;  ///< bytes
  std::uint64_t pitch = 0;    ///< bytes of a row
  std::uint64_t size = 0;     ///< bytes of all
  std::uint64_t address = 0;
  std::weak_ptr<Context> context;
  Device* device = nullptr;

  std::uint64_t rows() const { return std::max<std::uint64_t>(shape.Height, 1); }
  std::uint64_t layers() const { return std::max<std::uint64_t>(shape.Depth, 1); }
};

struct Mipmap {
  std::vector<std::shared_ptr<Array>> levels;
  std::uint64_t size = 0;
};

}  // namespace drover::sim::cuda

#pragma once

#include "sim/cuda/graph.h"

namespace drover::sim::cuda {

struct Launch {
  CUfunction function = nullptr;  ///< or a kernel's handle
  unsigned int grid[3] = {};
  unsigned int block[3] = {};
  void** parameters = nullptr;
  void** extra = nullptr;
};

/// What a launch is to the queue; reads its parameters. CUDA_SUCCESS, or why it is none.
CUresult launch_step(Context& context, const Launch& launch, Step& step);

}  // namespace drover::sim::cuda

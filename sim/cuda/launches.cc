// Launches. Kernels do not run; one that is named "spin" keeps the GPU busy for as many microseconds as its
// first parameter, of 64 bits, says.

#include <cstring>

#include "sim/cuda/call.h"
#include "sim/cuda/graph.h"
#include "sim/cuda/launch.h"
#include "sim/cuda/module.h"

namespace drover::sim::cuda {
namespace {

constexpr std::uint64_t kNsOfAMicrosecond = 1000;
constexpr std::uint64_t kLongestSpin = std::uint64_t{1} << 40;  ///< microseconds
constexpr std::size_t kMostExtra = 8;

/// The first parameter of a launch, or null.
const void* first_parameter(void** parameters, void** extra) {
  if (parameters != nullptr) return parameters[0];
  const void* buffer = nullptr;
  std::size_t size = 0;
  for (std::size_t i = 0; extra != nullptr && i < kMostExtra && extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
    if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = extra[i + 1];
    if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE) size = *static_cast<const std::size_t*>(extra[i + 1]);
  }
  return size >= sizeof(std::uint64_t) ? buffer : nullptr;
}

}  // namespace

CUresult launch_step(Context& context, const Launch& launch, Step& step) {
  const auto function = context.driver.functions.find(launch.function);
  if (!function) return CUDA_ERROR_INVALID_HANDLE;
  const auto is_empty = [](const unsigned int(&size)[3]) {
    return size[0] == 0 || size[1] == 0 || size[2] == 0;
  };
  const auto threads = std::uint64_t{launch.block[0]} * launch.block[1] * launch.block[2];
  if (is_empty(launch.grid) || is_empty(launch.block) || threads > 1024) return CUDA_ERROR_INVALID_VALUE;
  if (const auto library = function->library.lock()) {
    CUresult result{};
    if (!library->module_in(context, result)) return result;
  }
  step = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
  if (!function->spins()) return CUDA_SUCCESS;
  const auto* const parameter = first_parameter(launch.parameters, launch.extra);
  if (parameter == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::uint64_t microseconds = 0;
  std::memcpy(&microseconds, parameter, sizeof(microseconds));
  step.spin_ns = std::min(microseconds, kLongestSpin) * kNsOfAMicrosecond;
  return CUDA_SUCCESS;
}

}  // namespace drover::sim::cuda

using namespace drover::sim::cuda;

namespace {

CUresult launch_on(CUstream handle, const Launch& launch) {
  return on_stream(handle, [&](Context& context, Stream& stream) {
    Step step;
    const auto result = launch_step(context, launch, step);
    return result == CUDA_SUCCESS ? submit(context, stream, std::move(step)) : result;
  });
}

CUresult call_on(CUstream handle, CUhostFn function, void* data) {
  return on_stream(handle, [&](Context& context, Stream& stream) {
    if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return submit(context, stream, CU_GRAPH_NODE_TYPE_HOST, [=](std::uint64_t) { function(data); });
  });
}

/// What launches of the first version of the interface say beforehand, each function's own.
struct OldLaunch {
  unsigned int block[3] = {1, 1, 1};
  std::array<char, 4096> parameters{};
};

std::mutex old_launches_mutex;
std::map<CUfunction, OldLaunch>& old_launches() {
  static auto& launches = *new std::map<CUfunction, OldLaunch>;
  return launches;
}

CUresult prepare(CUfunction handle, auto body) {
  return with_driver([&](Driver& driver) {
    if (!driver.functions.find(handle)) return CUDA_ERROR_INVALID_HANDLE;
    const std::scoped_lock lock(old_launches_mutex);
    return body(old_launches()[handle]);
  });
}

}  // namespace

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                        unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int,
                        CUstream stream, void** parameters, void** extra) {
  return launch_on(stream,
                   {function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, parameters, extra});
}
CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                   unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                   unsigned int block_z, unsigned int, CUstream stream, void** parameters) {
  return launch_on(stream,
                   {function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, parameters, nullptr});
}
CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters,
                          void** extra) {
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return launch_on(config->hStream, {function,
                                     {config->gridDimX, config->gridDimY, config->gridDimZ},
                                     {config->blockDimX, config->blockDimY, config->blockDimZ},
                                     parameters,
                                     extra});
}
CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
  return call_on(stream, function, data);
}

DROVER_PER_THREAD(cuLaunchKernel,
                  (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                   unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared,
                   CUstream stream, void** parameters, void** extra),
                  function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, per_thread(stream),
                  parameters, extra)
DROVER_PER_THREAD(cuLaunchCooperativeKernel,
                  (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                   unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared,
                   CUstream stream, void** parameters),
                  function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, per_thread(stream),
                  parameters)
DROVER_PER_THREAD(cuLaunchHostFunc, (CUstream stream, CUhostFn function, void* data), per_thread(stream),
                  function, data)
CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig* config, CUfunction function, void** parameters,
                               void** extra) {
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto own = *config;
  own.hStream = per_thread(own.hStream);
  return cuLaunchKernelEx(&own, function, parameters, extra);
}

CUresult cuFuncSetBlockShape(CUfunction function, int x, int y, int z) {
  return prepare(function, [&](OldLaunch& launch) {
    if (x <= 0 || y <= 0 || z <= 0) return CUDA_ERROR_INVALID_VALUE;
    launch.block[0] = static_cast<unsigned int>(x);
    launch.block[1] = static_cast<unsigned int>(y);
    launch.block[2] = static_cast<unsigned int>(z);
    return CUDA_SUCCESS;
  });
}
CUresult cuParamSetSize(CUfunction function, unsigned int size) {
  return prepare(function, [&](OldLaunch& launch) {
    return size <= launch.parameters.size() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}
CUresult cuParamSetv(CUfunction function, int offset, void* value, unsigned int size) {
  return prepare(function, [&](OldLaunch& launch) {
    const auto most = launch.parameters.size();
    if (value == nullptr || offset < 0 || size > most || static_cast<std::size_t>(offset) > most - size)
      return CUDA_ERROR_INVALID_VALUE;
    std::memcpy(launch.parameters.data() + offset, value, size);
    return CUDA_SUCCESS;
  });
}
CUresult cuParamSeti(CUfunction function, int offset, unsigned int value) {
  return cuParamSetv(function, offset, &value, sizeof(value));
}
CUresult cuLaunchGridAsync(CUfunction function, int width, int height, CUstream stream) {
  if (width <= 0 || height <= 0) return CUDA_ERROR_INVALID_VALUE;
  OldLaunch launch;
  const auto result = prepare(function, [&](OldLaunch& prepared) {
    launch = prepared;
    return CUDA_SUCCESS;
  });
  if (result != CUDA_SUCCESS) return result;
  void* parameters[] = {launch.parameters.data()};
  return launch_on(stream, {function,
                            {static_cast<unsigned int>(width), static_cast<unsigned int>(height), 1},
                            {launch.block[0], launch.block[1], launch.block[2]},
                            parameters,
                            nullptr});
}
CUresult cuLaunchGrid(CUfunction function, int width, int height) {
  return cuLaunchGridAsync(function, width, height, nullptr);
}
CUresult cuLaunch(CUfunction function) {
  return cuLaunchGridAsync(function, 1, 1, nullptr);
}

// No kernel uses more than its threads.
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function, int block_size,
                                                     size_t) {
  return in_context([&](Context& context) {
    if (!context.driver.functions.find(function)) return CUDA_ERROR_INVALID_HANDLE;
    if (block_size <= 0 || block_size > 1024) return CUDA_ERROR_INVALID_VALUE;
    return answer(blocks, std::min(2048 / block_size, 16));
  });
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction function,
                                                              int block_size, size_t shared, unsigned int) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, block_size, shared);
}
CUresult cuOccupancyMaxPotentialBlockSize(int* grid, int* block, CUfunction function, CUoccupancyB2DSize,
                                          size_t, int limit) {
  return in_context([&](Context& context) {
    if (!context.driver.functions.find(function)) return CUDA_ERROR_INVALID_HANDLE;
    if (grid == nullptr || block == nullptr || limit < 0) return CUDA_ERROR_INVALID_VALUE;
    *block = limit == 0 ? 1024 : std::min(limit, 1024);
    *grid = context.device.gpu->model.multiprocessors * std::max(1, 2048 / *block);
    return CUDA_SUCCESS;
  });
}

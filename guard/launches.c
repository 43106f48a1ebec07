/* Everything that starts a kernel but graphs (guard/pools.c): in the turn of the container, where GPU time is
 * limited. */
#include "guard/pages.h"
#include "guard/turns.h"

CUresult cuLaunch(CUfunction function) {
  IN_TURN(real.cuLaunch(function), NULL, false, function);
}

CUresult cuLaunchGrid(CUfunction function, int width, int height) {
  IN_TURN(real.cuLaunchGrid(function, width, height), NULL, false, function);
}

CUresult cuLaunchGridAsync(CUfunction function, int width, int height, CUstream stream) {
  IN_TURN(real.cuLaunchGridAsync(function, width, height, stream), stream, false, function);
}

#define KERNEL(name, PER_THREAD)                                                                       \
  CUresult name(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,    \
                unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared, \
                CUstream stream, void** parameters, void** extra) {                                    \
    IN_TURN(real.name(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream,     \
                      parameters, extra),                                                              \
            stream, PER_THREAD, function);                                                             \
  }
KERNEL(cuLaunchKernel, false)
KERNEL(cuLaunchKernel_ptsz, true)

#define COOPERATIVE(name, PER_THREAD)                                                                       \
  CUresult name(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,         \
                unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared,      \
                CUstream stream, void** parameters) {                                                       \
    IN_TURN(                                                                                                \
        real.name(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, parameters), \
        stream, PER_THREAD, function);                                                                      \
  }
COOPERATIVE(cuLaunchCooperativeKernel, false)
COOPERATIVE(cuLaunchCooperativeKernel_ptsz, true)

#define WITH_CONFIG(name, PER_THREAD)                                                                 \
  CUresult name(const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra) { \
    IN_TURN(real.name(config, function, parameters, extra), config == NULL ? NULL : config->hStream,  \
            PER_THREAD, function);                                                                    \
  }
WITH_CONFIG(cuLaunchKernelEx, false)
WITH_CONFIG(cuLaunchKernelEx_ptsz, true)

/* In the turns of all its GPUs, each with its own stream. */
CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS* list, unsigned int count,
                                              unsigned int flags) {
  struct launch launches[GUARD_GPUS];
  CUcontext contexts[GUARD_GPUS] = {NULL}, ignored;
  if (!__atomic_load_n(&turns_limited, __ATOMIC_RELAXED) || list == NULL || count > GUARD_GPUS)
    return real.cuLaunchCooperativeKernelMultiDevice(list, count, flags);
  for (unsigned int i = 0; i < count; ++i) {
    if (real.cuStreamGetCtx(list[i].hStream, &contexts[i]) != CUDA_SUCCESS ||
        real.cuCtxPushCurrent_v2(contexts[i]) != CUDA_SUCCESS) {
      contexts[i] = NULL;
      continue;
    }
    launch_begin(&launches[i], list[i].hStream, false, list[i].function);
    real.cuCtxPopCurrent_v2(&ignored);
  }
  const CUresult result = real.cuLaunchCooperativeKernelMultiDevice(list, count, flags);
  for (unsigned int i = 0; i < count; ++i) {
    if (contexts[i] == NULL || real.cuCtxPushCurrent_v2(contexts[i]) != CUDA_SUCCESS) continue;
    launch_end(&launches[i], result);
    real.cuCtxPopCurrent_v2(&ignored);
  }
  return result;
}

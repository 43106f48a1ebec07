/* Contexts, their limits, and code: calls that take memory that nobody asked for by its size. */
#include "guard/charge.h"
#include "guard/pages.h"
#include "guard/turns.h"

static uint64_t current_context(void) {
  CUcontext context = NULL;
  return real.cuCtxGetCurrent(&context) == CUDA_SUCCESS ? (uintptr_t)context : 0;
}

/* IMPLIED(function, its parameters, arguments, the entry, bytes at least, the kind of thing, where the call
 * leaves its handle, with which context it goes, how to undo it). */
#define IMPLIED(name, parameters, arguments, ENTRY, LEAST, KIND, HANDLE, CONTEXT, UNDO)                    \
  CUresult name parameters {                                                                               \
    const int entry = (HANDLE) == NULL ? -1 : ENTRY;                                                       \
    struct implied implied;                                                                                \
    if (entry < 0) return real.name arguments;                                                             \
    if (!implied_begin(&implied, entry, LEAST)) return refuse(entry);                                      \
    const CUresult result = real.name arguments;                                                           \
    const uint64_t key = result == CUDA_SUCCESS ? (uintptr_t)*(HANDLE) : 0;                                \
    if (implied_end(&implied, result, KIND, key, CONTEXT)) {                                               \
      if (result == CUDA_SUCCESS && (KIND) == KIND_CONTEXT) guard_set_context_units(entry, implied.grown); \
      return result;                                                                                       \
    }                                                                                                      \
    real.UNDO(*(HANDLE));                                                                                  \
    implied_undone(&implied);                                                                              \
    return refuse(entry);                                                                                  \
  }

/* ---- Contexts ---- */

#define CONTEXT(name, parameters, arguments)                                                            \
  IMPLIED(name, parameters, arguments, limited_device(device), guard_context_units(entry) * GUARD_UNIT, \
          KIND_CONTEXT, context, key, cuCtxDestroy_v2)
CONTEXT(cuCtxCreate, (CUcontext * context, unsigned int flags, CUdevice device), (context, flags, device))
CONTEXT(cuCtxCreate_v2, (CUcontext * context, unsigned int flags, CUdevice device), (context, flags, device))
CONTEXT(cuCtxCreate_v3,
        (CUcontext * context, CUexecAffinityParam* affinities, int number, unsigned int flags,
         CUdevice device),
        (context, affinities, number, flags, device))
CONTEXT(cuCtxCreate_v4, (CUcontext * context, CUctxCreateParams* params, unsigned int flags, CUdevice device),
        (context, params, flags, device))
IMPLIED(cuGreenCtxCreate,
        (CUgreenCtx * context, CUdevResourceDesc description, CUdevice device, unsigned int flags),
        (context, description, device, flags), limited_device(device), 0, KIND_NONE, context, 0,
        cuGreenCtxDestroy)

static bool is_active(CUdevice device) {
  unsigned int flags;
  int active = 0;
  return real.cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS && active;
}

/* Only the first call makes it. */
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  const int entry = context == NULL ? -1 : limited_device(device);
  struct implied implied;
  if (entry < 0 || is_active(device)) return real.cuDevicePrimaryCtxRetain(context, device);
  if (!implied_begin(&implied, entry, guard_context_units(entry) * GUARD_UNIT)) return refuse(entry);
  const CUresult result = real.cuDevicePrimaryCtxRetain(context, device);
  const uint64_t its = result == CUDA_SUCCESS ? (uintptr_t)*context : 0;
  if (implied_end(&implied, result, KIND_PRIMARY, (uint64_t)device, its)) {
    if (result == CUDA_SUCCESS && implied.grown > 0) guard_set_context_units(entry, implied.grown);
    return result;
  }
  real.cuDevicePrimaryCtxRelease_v2(device);
  implied_undone(&implied);
  return refuse(entry);
}

#define END_PRIMARY(name)                                              \
  CUresult name(CUdevice device) {                                     \
    if (!is_counted()) return real.name(device);                       \
    exclusive_begin();                                                 \
    turns_stop();                                                      \
    struct thing primary;                                              \
    const CUresult result = real.name(device);                         \
    const bool gone = !is_active(device);                              \
    if (gone && table_get(KIND_PRIMARY, (uint64_t)device, &primary)) { \
      forget_context(primary.context);                                 \
      turns_forget((CUcontext)(uintptr_t)primary.context);             \
    }                                                                  \
    turns_go_on();                                                     \
    set_all_loose();                                                   \
    exclusive_end();                                                   \
    tighten_all();                                                     \
    return result;                                                     \
  }
END_PRIMARY(cuDevicePrimaryCtxRelease)
END_PRIMARY(cuDevicePrimaryCtxRelease_v2)
END_PRIMARY(cuDevicePrimaryCtxReset)
END_PRIMARY(cuDevicePrimaryCtxReset_v2)

/* Ends something exclusively: no allocation of another thread is in flight. */
#define END(name, type, FORGET)                 \
  CUresult name(type ended) {                   \
    if (!is_counted()) return real.name(ended); \
    exclusive_begin();                          \
    turns_stop();                               \
    const CUresult result = real.name(ended);   \
    if (result == CUDA_SUCCESS) FORGET;         \
    turns_go_on();                              \
    set_all_loose();                            \
    exclusive_end();                            \
    tighten_all();                              \
    return result;                              \
  }
#define FORGET_CONTEXT (forget_context((uintptr_t)ended), turns_forget(ended))
END(cuCtxDestroy, CUcontext, FORGET_CONTEXT)
END(cuCtxDestroy_v2, CUcontext, FORGET_CONTEXT)
END(cuGreenCtxDestroy, CUgreenCtx, turns_forget(NULL))

/* The heap of kernels is as large as it is told to be. */
CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  const int entry = limited_here();
  struct implied implied;
  size_t before = 0;
  if (entry < 0) return real.cuCtxSetLimit(limit, value);
  const bool known = real.cuCtxGetLimit(&before, limit) == CUDA_SUCCESS;
  const uint64_t least = limit == CU_LIMIT_MALLOC_HEAP_SIZE && known && value > before ? value - before : 0;
  if (!implied_begin(&implied, entry, least)) return refuse(entry);
  const CUresult result = real.cuCtxSetLimit(limit, value);
  if (implied_end(&implied, result, KIND_NONE, 0, 0)) {
    if (value < before) set_loose(entry);
    return result;
  }
  if (known) real.cuCtxSetLimit(limit, before);
  implied_undone(&implied);
  return refuse(entry);
}

/* ---- Code ---- */

#define MODULE(name, parameters, arguments)                                                       \
  IMPLIED(name, parameters, arguments, limited_here(), 0, KIND_MODULE, module, current_context(), \
          cuModuleUnload)
MODULE(cuModuleLoad, (CUmodule * module, const char* file), (module, file))
MODULE(cuModuleLoadData, (CUmodule * module, const void* image), (module, image))
MODULE(cuModuleLoadDataEx,
       (CUmodule * module, const void* image, unsigned int number, CUjit_option* options, void** values),
       (module, image, number, options, values))
MODULE(cuModuleLoadFatBinary, (CUmodule * module, const void* image), (module, image))

#define LIBRARY(name, source)                                                                               \
  IMPLIED(name,                                                                                             \
          (CUlibrary * library, source, CUjit_option * jit_options, void** jit_values,                      \
           unsigned int jit_number, CUlibraryOption* options, void** values, unsigned int number),          \
          (library, from, jit_options, jit_values, jit_number, options, values, number), limited_here(), 0, \
          KIND_LIBRARY, library, 0, cuLibraryUnload)
LIBRARY(cuLibraryLoadData, const void* from)
LIBRARY(cuLibraryLoadFromFile, const char* from)

#define UNLOAD(name, type, KIND)                    \
  CUresult name(type code) {                        \
    struct release release;                         \
    if (!is_counted()) return real.name(code);      \
    release_begin(&release, KIND, (uintptr_t)code); \
    const CUresult result = real.name(code);        \
    release_end(&release, result);                  \
    return result;                                  \
  }
UNLOAD(cuModuleUnload, CUmodule, KIND_MODULE)
UNLOAD(cuLibraryUnload, CUlibrary, KIND_LIBRARY)

#define _GNU_SOURCE
#include "guard/pools.h"

#include <pthread.h>
#include <stdlib.h>

#include "guard/charge.h"
#include "guard/pages.h"
#include "guard/turns.h"

enum { MOST_POOLS = 256, DEEPEST_GRAPH = 8 };

/* A pool of the program or of the driver; or, without a handle, what graphs allocate from on a device. */
struct pool {
  CUmemoryPool handle;
  CUdevice device;
  int entry;
  uint32_t charged; /* units */
};

static struct {
  pthread_mutex_t mutex;
  struct pool all[MOST_POOLS];
  int count;
} pools = {.mutex = PTHREAD_MUTEX_INITIALIZER};
static int graphs_allocate; /* some graph does */

void pools_forget(void) {
  pthread_mutex_init(&pools.mutex, NULL);
  pools.count = 0;
}

static uint64_t ask(const struct pool* pool, CUmemPool_attribute of_pool, CUgraphMem_attribute of_graphs) {
  cuuint64_t bytes = 0;
  const CUresult result = pool->handle != NULL
                              ? real.cuMemPoolGetAttribute(pool->handle, of_pool, &bytes)
                              : real.cuDeviceGetGraphMemAttribute(pool->device, of_graphs, &bytes);
  return result == CUDA_SUCCESS ? bytes : 0;
}

static uint64_t reserved_bytes(const struct pool* pool) {
  return ask(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT);
}

static uint64_t used_bytes(const struct pool* pool) {
  return ask(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT);
}

/* The slot says so many units for it, `ahead` of them for a call that has just been made: it is to say what
 * the pool has now. False when that is more than the limit leaves; it says so all the same. */
static bool settle(struct pool* pool, uint32_t ahead) {
  const uint64_t now = guard_units(reserved_bytes(pool)), before = (uint64_t)pool->charged + ahead;
  bool fits = true;
  if (now < before) guard_give(pool->entry, before - now);
  if (now > before) fits = guard_take(pool->entry, now - before);
  if (!fits) guard_add(pool->entry, now - before);
  pool->charged = (uint32_t)now;
  return fits;
}

static void trim(const struct pool* pool) {
  if (pool->handle != NULL)
    real.cuMemPoolTrimTo(pool->handle, 0);
  else
    real.cuDeviceGraphMemTrim(pool->device);
}

/* A pool grows by more than it was asked for: it need not keep that. */
static bool trim_to_fit(struct pool* pool) {
  trim(pool);
  settle(pool, 0);
  return guard_take(pool->entry, 0);
}

uint64_t pools_units(int entry, bool give_back) {
  uint64_t units = 0;
  pthread_mutex_lock(&pools.mutex);
  for (int i = 0; i < pools.count; ++i) {
    struct pool* pool = &pools.all[i];
    if (pool->entry != entry) continue;
    if (give_back) trim(pool);
    settle(pool, 0);
    units += pool->charged;
  }
  pthread_mutex_unlock(&pools.mutex);
  return units;
}

/* ---- Which pool ---- */

/* Null when there are too many. The mutex is held. */
static struct pool* remember(CUmemoryPool handle, CUdevice device, int entry) {
  for (int i = 0; i < pools.count; ++i)
    if (pools.all[i].handle == handle && (handle != NULL || pools.all[i].device == device))
      return &pools.all[i];
  if (pools.count == MOST_POOLS) return NULL;
  struct pool* pool = &pools.all[pools.count++];
  *pool = (struct pool){.handle = handle, .device = device, .entry = entry};
  return pool;
}

/* One that the program did not make here: the driver's own of some device, or else of the current one. */
static CUdevice device_of(CUmemoryPool handle, CUdevice current) {
  int count = 0;
  CUmemoryPool pool;
  real.cuDeviceGetCount(&count);
  for (CUdevice device = 0; device < count; ++device) {
    if (real.cuDeviceGetMemPool(&pool, device) == CUDA_SUCCESS && pool == handle) return device;
    if (real.cuDeviceGetDefaultMemPool(&pool, device) == CUDA_SUCCESS && pool == handle) return device;
  }
  return current;
}

static struct pool* find_pool(CUmemoryPool handle, CUdevice current) {
  for (int i = 0; i < pools.count; ++i)
    if (pools.all[i].handle == handle) return &pools.all[i];
  const CUdevice device = device_of(handle, current);
  return remember(handle, device, limited_entry(device));
}

CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* props) {
  if (!is_counted() || pool == NULL || props == NULL) return real.cuMemPoolCreate(pool, props);
  const bool on_device = props->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
  const int entry = on_device ? limited_device(props->location.id) : -1;
  CUmemPoolProps clamped = *props;
  if (entry >= 0 && (props->maxSize == 0 || props->maxSize > guard_limit_bytes(entry)))
    clamped.maxSize = guard_limit_bytes(entry);
  CUresult result = real.cuMemPoolCreate(pool, &clamped);
  /* Drivers before CUDA 12.2 know no such size. */
  if (result == CUDA_ERROR_INVALID_VALUE && props->maxSize == 0) result = real.cuMemPoolCreate(pool, props);
  if (result != CUDA_SUCCESS) return result;
  pthread_mutex_lock(&pools.mutex);
  struct pool* known = remember(*pool, props->location.id, entry);
  pthread_mutex_unlock(&pools.mutex);
  if (known != NULL || entry < 0) return result;
  real.cuMemPoolDestroy(*pool);
  return refuse(entry);
}

/* What it has left stays charged until the next measurement. */
CUresult cuMemPoolDestroy(CUmemoryPool handle) {
  if (!is_counted()) return real.cuMemPoolDestroy(handle);
  exclusive_begin();
  pthread_mutex_lock(&pools.mutex);
  const CUresult result = real.cuMemPoolDestroy(handle);
  for (int i = 0; result == CUDA_SUCCESS && i < pools.count; ++i) {
    if (pools.all[i].handle != handle) continue;
    if (pools.all[i].entry >= 0) count(pools.all[i].entry, pools.all[i].charged, WEIGHT_IMPLIED);
    pools.all[i] = pools.all[--pools.count];
    break;
  }
  pthread_mutex_unlock(&pools.mutex);
  set_all_loose();
  exclusive_end();
  tighten_all();
  return result;
}

#define TRIM(name, parameters, arguments)        \
  CUresult name parameters {                     \
    const CUresult result = real.name arguments; \
    if (is_counted()) set_all_loose();           \
    return result;                               \
  }
TRIM(cuMemPoolTrimTo, (CUmemoryPool pool, size_t keep), (pool, keep))
TRIM(cuDeviceGraphMemTrim, (CUdevice device), (device))

/* ---- Allocations from pools ---- */

/* Takes what the pool will have to reserve for `bytes`, with the mutex held from then on unless it fails. A
 * graph that runs `again` may use what it had. Null: it is refused, and counted. */
static struct pool* begin(CUmemoryPool handle, CUdevice device, int entry, uint64_t bytes, bool again,
                          uint32_t* ahead) {
  int whose = entry;
  for (int tries = 0; tries < 2; ++tries) {
    counting_begin();
    pthread_mutex_lock(&pools.mutex);
    struct pool* pool = handle != NULL ? find_pool(handle, device) : remember(NULL, device, entry);
    const uint64_t block = 2 << 20, needed = bytes / block * block + (bytes % block ? block : 0);
    const uint64_t units = needed >= bytes ? guard_units(needed) : UINT32_MAX;
    *ahead = 0;
    if (pool != NULL && pool->entry < 0) return pool;
    if (pool != NULL) {
      whose = pool->entry;
      const uint64_t reserved = reserved_bytes(pool), used = used_bytes(pool);
      if (reserved >= used && reserved - used >= needed && needed >= bytes) return pool;
      *ahead = units < UINT32_MAX ? (uint32_t)units : UINT32_MAX;
      if (guard_take(pool->entry, *ahead)) return pool;
      *ahead = 0;
      if (again && tries > 0 && reserved >= needed) return pool;
    }
    pthread_mutex_unlock(&pools.mutex);
    counting_end();
    if (tries == 0) make_room(entry);
  }
  guard_count_refusal(whose);
  return NULL;
}

static void end(void) {
  pthread_mutex_unlock(&pools.mutex);
  counting_end();
}

/* A stream that is captured only gets a node. */
#define FROM_POOL(name, parameters, arguments, POOL, CAPTURING, FREE)                                     \
  CUresult name parameters {                                                                              \
    CUdevice device;                                                                                      \
    CUstreamCaptureStatus capturing = CU_STREAM_CAPTURE_STATUS_NONE;                                      \
    CUmemoryPool from = NULL;                                                                             \
    uint32_t ahead;                                                                                       \
    const int entry = pointer == NULL || bytes == 0 ? -1 : limited_here();                                \
    if (entry < 0 || real.cuCtxGetDevice(&device) != CUDA_SUCCESS) return real.name arguments;            \
    if (real.CAPTURING(stream, &capturing) != CUDA_SUCCESS || capturing != CU_STREAM_CAPTURE_STATUS_NONE) \
      return real.name arguments;                                                                         \
    if (POOL != CUDA_SUCCESS || from == NULL) return real.name arguments;                                 \
    struct pool* its = begin(from, device, entry, bytes, false, &ahead);                                  \
    if (its == NULL) return CUDA_ERROR_OUT_OF_MEMORY;                                                     \
    CUresult result = real.name arguments;                                                                \
    if (its->entry >= 0 && !settle(its, ahead) && !trim_to_fit(its) && result == CUDA_SUCCESS) {          \
      real.FREE(*pointer, stream);                                                                        \
      trim_to_fit(its);                                                                                   \
      result = refuse(its->entry);                                                                        \
    }                                                                                                     \
    end();                                                                                                \
    return result;                                                                                        \
  }

#define FROM_DEFAULT(name, CAPTURING, FREE)                                                         \
  FROM_POOL(name, (CUdeviceptr * pointer, size_t bytes, CUstream stream), (pointer, bytes, stream), \
            real.cuDeviceGetMemPool(&from, device), CAPTURING, FREE)
#define FROM_NAMED(name, CAPTURING, FREE)                                                    \
  FROM_POOL(name, (CUdeviceptr * pointer, size_t bytes, CUmemoryPool pool, CUstream stream), \
            (pointer, bytes, pool, stream), ((from = pool), CUDA_SUCCESS), CAPTURING, FREE)
FROM_DEFAULT(cuMemAllocAsync, cuStreamIsCapturing, cuMemFreeAsync)
FROM_DEFAULT(cuMemAllocAsync_ptsz, cuStreamIsCapturing_ptsz, cuMemFreeAsync_ptsz)
FROM_NAMED(cuMemAllocFromPoolAsync, cuStreamIsCapturing, cuMemFreeAsync)
FROM_NAMED(cuMemAllocFromPoolAsync_ptsz, cuStreamIsCapturing_ptsz, cuMemFreeAsync_ptsz)

static void reread_pools(void) {
  counting_begin();
  for (int entry = 0; entry < GUARD_GPUS; ++entry) pools_units(entry, false);
  counting_end();
}

/* Pools give back what is freed when the work on it is waited for. */
static int freed; /* since somebody waited last */

#define FREE_LATER(name)                                        \
  CUresult name(CUdeviceptr pointer, CUstream stream) {         \
    struct release release;                                     \
    if (!is_counted()) return real.name(pointer, stream);       \
    release_begin(&release, KIND_MEMORY, pointer);              \
    release.certain = false; /* the driver has it back later */ \
    const CUresult result = real.name(pointer, stream);         \
    release_end(&release, result);                              \
    __atomic_store_n(&freed, 1, __ATOMIC_RELEASE);              \
    return result;                                              \
  }
FREE_LATER(cuMemFreeAsync)
FREE_LATER(cuMemFreeAsync_ptsz)

#define WAIT(name, parameters, arguments)                            \
  CUresult name parameters {                                         \
    const CUresult result = real.name arguments;                     \
    if (__atomic_load_n(&freed, __ATOMIC_ACQUIRE) && is_counted() && \
        __atomic_exchange_n(&freed, 0, __ATOMIC_ACQ_REL))            \
      reread_pools();                                                \
    return result;                                                   \
  }
WAIT(cuCtxSynchronize, (void), ())
WAIT(cuCtxSynchronize_v2, (CUcontext context), (context))
WAIT(cuStreamSynchronize, (CUstream stream), (stream))
WAIT(cuStreamSynchronize_ptsz, (CUstream stream), (stream))
WAIT(cuEventSynchronize, (CUevent event), (event))

/* ---- Graphs that allocate ---- */

/* What its nodes allocate together, children's included. */
static uint64_t graph_bytes(CUgraph graph, int depth) {
  CUgraphNode nodes[256];
  size_t count = 0;
  uint64_t bytes = 0;
  if (depth == DEEPEST_GRAPH || real.cuGraphGetNodes(graph, NULL, &count) != CUDA_SUCCESS || count == 0)
    return 0;
  CUgraphNode* all = count <= 256 ? nodes : calloc(count, sizeof *all);
  if (all != NULL && real.cuGraphGetNodes(graph, all, &count) == CUDA_SUCCESS) {
    for (size_t i = 0; i < count; ++i) {
      CUgraphNodeType type;
      CUDA_MEM_ALLOC_NODE_PARAMS params;
      CUgraph child;
      if (real.cuGraphNodeGetType(all[i], &type) != CUDA_SUCCESS) continue;
      if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC &&
          real.cuGraphMemAllocNodeGetParams(all[i], &params) == CUDA_SUCCESS)
        bytes += params.bytesize;
      if (type == CU_GRAPH_NODE_TYPE_GRAPH &&
          real.cuGraphChildGraphNodeGetGraph(all[i], &child) == CUDA_SUCCESS)
        bytes += graph_bytes(child, depth + 1);
    }
  }
  if (all != nodes) free(all);
  return bytes;
}

/* The graph's memory may be taken when it is made ready, uploaded or launched: before each of these as much
 * must be free as its nodes allocate, unless the driver has it reserved. */
#define INSTANTIATE(name, parameters, arguments)                                        \
  CUresult name parameters {                                                            \
    CUdevice device;                                                                    \
    uint32_t ahead;                                                                     \
    const int entry = exec == NULL ? -1 : limited_here();                               \
    const uint64_t bytes = entry < 0 ? 0 : graph_bytes(graph, 0);                       \
    if (bytes == 0 || real.cuCtxGetDevice(&device) != CUDA_SUCCESS || !table_reserve()) \
      return real.name arguments;                                                       \
    struct pool* pool = begin(NULL, device, entry, bytes, false, &ahead);               \
    if (pool == NULL) return CUDA_ERROR_OUT_OF_MEMORY;                                  \
    const CUresult result = real.name arguments;                                        \
    settle(pool, ahead);                                                                \
    if (result == CUDA_SUCCESS) {                                                       \
      const struct thing thing = {.key = (uintptr_t)*exec,                              \
                                  .bytes = bytes,                                       \
                                  .kind = KIND_GRAPH,                                   \
                                  .weight = WEIGHT_IMPLIED,                             \
                                  .entry = (uint8_t)entry};                             \
      table_put(&thing);                                                                \
      __atomic_store_n(&graphs_allocate, 1, __ATOMIC_RELEASE);                          \
    }                                                                                   \
    end();                                                                              \
    return result;                                                                      \
  }

INSTANTIATE(cuGraphInstantiate,
            (CUgraphExec * exec, CUgraph graph, CUgraphNode* node, char* log, size_t size),
            (exec, graph, node, log, size))
INSTANTIATE(cuGraphInstantiate_v2,
            (CUgraphExec * exec, CUgraph graph, CUgraphNode* node, char* log, size_t size),
            (exec, graph, node, log, size))
INSTANTIATE(cuGraphInstantiateWithFlags, (CUgraphExec * exec, CUgraph graph, unsigned long long flags),
            (exec, graph, flags))
INSTANTIATE(cuGraphInstantiateWithParams,
            (CUgraphExec * exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* params), (exec, graph, params))
INSTANTIATE(cuGraphInstantiateWithParams_ptsz,
            (CUgraphExec * exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* params), (exec, graph, params))

#define START(function, name)                                                                            \
  function(CUgraphExec exec, CUstream stream) {                                                          \
    CUdevice device;                                                                                     \
    uint32_t ahead;                                                                                      \
    struct thing graph;                                                                                  \
    if (!__atomic_load_n(&graphs_allocate, __ATOMIC_ACQUIRE) || !is_counted() ||                         \
        !table_get(KIND_GRAPH, (uintptr_t)exec, &graph) || real.cuCtxGetDevice(&device) != CUDA_SUCCESS) \
      return real.name(exec, stream);                                                                    \
    struct pool* pool = begin(NULL, device, graph.entry, graph.bytes, graph.object != NULL, &ahead);     \
    if (pool == NULL) return CUDA_ERROR_OUT_OF_MEMORY;                                                   \
    const CUresult result = real.name(exec, stream);                                                     \
    settle(pool, ahead);                                                                                 \
    if (result == CUDA_SUCCESS && graph.object == NULL) {                                                \
      graph.object = pool; /* it has run once */                                                         \
      table_put(&graph);                                                                                 \
    }                                                                                                    \
    end();                                                                                               \
    return result;                                                                                       \
  }
START(CUresult cuGraphUpload, cuGraphUpload)
START(CUresult cuGraphUpload_ptsz, cuGraphUpload_ptsz)
START(static CUresult start, cuGraphLaunch)
START(static CUresult start_ptsz, cuGraphLaunch_ptsz)

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  IN_TURN(start(exec, stream), stream, false, exec);
}
CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream) {
  IN_TURN(start_ptsz(exec, stream), stream, true, exec);
}

CUresult cuGraphExecDestroy(CUgraphExec exec) {
  struct release release;
  if (!is_counted()) return real.cuGraphExecDestroy(exec);
  release_begin(&release, KIND_GRAPH, (uintptr_t)exec);
  const CUresult result = real.cuGraphExecDestroy(exec);
  release_end(&release, result);
  return result;
}

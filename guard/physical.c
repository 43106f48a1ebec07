/* Physical memory by handle: it lives as long as a handle or a mapping of it does. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>

#include "guard/charge.h"
#include "guard/pages.h"

enum { GRANULARITY = 2 << 20, MOST_STEPS = 1 << 20 };

struct physical {
  int entry;
  enum weight weight;
  uint32_t units;
  unsigned int handles;
  unsigned int mappings;
};

/* Its owner makes the driver's call and keeps the book of it as one step. */
static pthread_mutex_t physical_mutex = PTHREAD_MUTEX_INITIALIZER;
static int is_in_arrays; /* from then on handles and mappings are not all that keeps memory alive */

static void lock_physical(void) {
  counting_begin();
  pthread_mutex_lock(&physical_mutex);
}

static void unlock_physical(void) {
  pthread_mutex_unlock(&physical_mutex);
  counting_end();
}

static void put(enum kind kind, uint64_t key, struct physical* physical, uint64_t bytes) {
  const struct thing thing = {.key = key, .object = physical, .bytes = bytes, .kind = (uint8_t)kind};
  table_put(&thing);
}

static void drop_if_unused(struct physical* physical) {
  if (physical->handles > 0 || physical->mappings > 0) return;
  uncount(physical->entry, physical->units, physical->weight, !is_in_arrays);
  free(physical);
}

static void start_anew(void) {
  pthread_mutex_init(&physical_mutex, NULL);
}

__attribute__((constructor)) static void watch_forks(void) {
  pthread_atfork(NULL, NULL, start_anew);
}

/* Null without memory. */
static struct physical* new_physical(int entry, enum weight weight) {
  struct physical* physical = calloc(1, sizeof *physical);
  if (physical == NULL) return NULL;
  physical->entry = entry;
  physical->weight = weight;
  physical->handles = 1;
  return physical;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t size, const CUmemAllocationProp* prop,
                     unsigned long long flags) {
  const bool on_device = handle != NULL && prop != NULL && prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
  const int entry = on_device ? limited_device(prop->location.id) : -1;
  struct charge charge;
  if (entry < 0 || size == 0) return real.cuMemCreate(handle, size, prop, flags);
  struct physical* physical = new_physical(entry, WEIGHT_EXACT);
  if (physical == NULL || !charge_begin(&charge, entry, size, WEIGHT_EXACT)) {
    free(physical);
    return refuse(entry);
  }
  pthread_mutex_lock(&physical_mutex);
  const CUresult result = real.cuMemCreate(handle, size, prop, flags);
  if (result == CUDA_SUCCESS) {
    physical->units = charge.units;
    physical->weight = (enum weight)charge.weight;
    charge_keep(&charge, KIND_HANDLE, *handle, physical);
  } else {
    charge_drop(&charge);
    free(physical);
  }
  pthread_mutex_unlock(&physical_mutex);
  return result;
}

/* How much there is, it shows when it is mapped. */
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* os_handle,
                                        CUmemAllocationHandleType type) {
  const int entry = handle == NULL ? -1 : limited_here();
  if (entry < 0) return real.cuMemImportFromShareableHandle(handle, os_handle, type);
  struct physical* physical = new_physical(entry, WEIGHT_BESIDE);
  if (physical == NULL || !table_reserve()) {
    free(physical);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  lock_physical();
  struct thing same;
  const CUresult result = real.cuMemImportFromShareableHandle(handle, os_handle, type);
  if (result == CUDA_SUCCESS && table_get(KIND_HANDLE, *handle, &same)) {
    ++((struct physical*)same.object)->handles;
    free(physical);
  } else if (result == CUDA_SUCCESS) {
    put(KIND_HANDLE, *handle, physical, 0);
  } else {
    free(physical);
  }
  unlock_physical();
  return result;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  if (!is_counted()) return real.cuMemRelease(handle);
  lock_physical();
  struct thing thing;
  const CUresult result = real.cuMemRelease(handle);
  if (result == CUDA_SUCCESS && table_get(KIND_HANDLE, handle, &thing)) {
    struct physical* physical = thing.object;
    if (--physical->handles == 0) table_take(KIND_HANDLE, handle, &thing);
    drop_if_unused(physical);
  }
  unlock_physical();
  return result;
}

/* Of imported memory, what is mapped is charged at the latest then. */
static bool charge_imported(struct physical* physical, uint64_t bytes) {
  const uint64_t units = guard_units(bytes);
  if (physical->weight != WEIGHT_BESIDE || units <= physical->units) return true;
  if (units > UINT32_MAX || !guard_take(physical->entry, units - physical->units)) return false;
  count(physical->entry, (uint32_t)units - physical->units, WEIGHT_BESIDE);
  physical->units = (uint32_t)units;
  return true;
}

CUresult cuMemMap(CUdeviceptr address, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
  if (!is_counted()) return real.cuMemMap(address, size, offset, handle, flags);
  if (!table_reserve()) return CUDA_ERROR_OUT_OF_MEMORY;
  int entry = -1;
  for (int tries = 0; tries < 2; ++tries) {
    lock_physical();
    struct thing thing;
    struct physical* physical = table_get(KIND_HANDLE, handle, &thing) ? thing.object : NULL;
    entry = physical == NULL ? -1 : physical->entry;
    const bool fits = physical == NULL || charge_imported(physical, (uint64_t)offset + size);
    const CUresult result =
        fits ? real.cuMemMap(address, size, offset, handle, flags) : CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS && physical != NULL) {
      ++physical->mappings;
      put(KIND_MAPPING, address, physical, size);
    }
    unlock_physical();
    if (fits) return result;
    make_room(entry);
  }
  return refuse(entry);
}

CUresult cuMemUnmap(CUdeviceptr address, size_t size) {
  if (!is_counted()) return real.cuMemUnmap(address, size);
  lock_physical();
  const CUresult result = real.cuMemUnmap(address, size);
  struct thing thing;
  for (uint64_t at = 0; result == CUDA_SUCCESS && at < size;) {
    const bool known = table_take(KIND_MAPPING, address + at, &thing);
    at += known && thing.bytes > 0 ? thing.bytes : GRANULARITY;
    if (!known) continue;
    struct physical* physical = thing.object;
    --physical->mappings;
    drop_if_unused(physical);
  }
  unlock_physical();
  return result;
}

/* The mapping that holds an address: where it begins is found by steps, as nobody asks for this often. */
static struct physical* mapped_at(uint64_t address) {
  uint64_t begin = address - address % GRANULARITY;
  struct thing thing;
  for (int steps = 0; steps < MOST_STEPS && begin > 0; ++steps, begin -= GRANULARITY)
    if (table_get(KIND_MAPPING, begin, &thing)) return address - begin < thing.bytes ? thing.object : NULL;
  return NULL;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
  if (!is_counted()) return real.cuMemRetainAllocationHandle(handle, address);
  if (!table_reserve()) return CUDA_ERROR_OUT_OF_MEMORY;
  lock_physical();
  const CUresult result = real.cuMemRetainAllocationHandle(handle, address);
  struct thing thing;
  if (result == CUDA_SUCCESS && table_get(KIND_HANDLE, *handle, &thing)) {
    ++((struct physical*)thing.object)->handles;
  } else if (result == CUDA_SUCCESS) {
    struct physical* physical = mapped_at((uintptr_t)address);
    if (physical != NULL) put(KIND_HANDLE, *handle, physical, 0);
    if (physical != NULL) ++physical->handles;
  }
  unlock_physical();
  return result;
}

#define MAP_ARRAYS(name)                                                     \
  CUresult name(CUarrayMapInfo* list, unsigned int count, CUstream stream) { \
    if (is_counted()) __atomic_store_n(&is_in_arrays, 1, __ATOMIC_SEQ_CST);  \
    return real.name(list, count, stream);                                   \
  }
MAP_ARRAYS(cuMemMapArrayAsync)
MAP_ARRAYS(cuMemMapArrayAsync_ptsz)

/* Memory by address, arrays, what is imported, and what programs are told about all of it. */
#include <limits.h>

#include "guard/charge.h"
#include "guard/pages.h"

enum { PITCH_ALIGNMENT = 512 };

/* ---- What there is ---- */

static bool tell(int entry, uint64_t* free, uint64_t* total) {
  if (entry < 0) return false;
  tighten(entry);
  *total = guard_limit_bytes(entry);
  *free = *total - guard_used_bytes(entry);
  return true;
}

static unsigned int narrow(uint64_t bytes) {
  return bytes < UINT_MAX ? (unsigned int)bytes : UINT_MAX;
}

CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
  uint64_t its_free, its_total;
  const CUresult result = real.cuMemGetInfo_v2(free, total);
  if (result != CUDA_SUCCESS || !tell(limited_here(), &its_free, &its_total)) return result;
  *free = its_free;
  *total = its_total;
  return result;
}

CUresult cuMemGetInfo(unsigned int* free, unsigned int* total) {
  uint64_t its_free, its_total;
  const CUresult result = real.cuMemGetInfo(free, total);
  if (result != CUDA_SUCCESS || !tell(limited_here(), &its_free, &its_total)) return result;
  *free = narrow(its_free);
  *total = narrow(its_total);
  return result;
}

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  const CUresult result = real.cuDeviceTotalMem_v2(bytes, device);
  const int entry = result == CUDA_SUCCESS ? limited_device(device) : -1;
  if (entry >= 0) *bytes = guard_limit_bytes(entry);
  return result;
}

CUresult cuDeviceTotalMem(unsigned int* bytes, CUdevice device) {
  const CUresult result = real.cuDeviceTotalMem(bytes, device);
  const int entry = result == CUDA_SUCCESS ? limited_device(device) : -1;
  if (entry >= 0) *bytes = narrow(guard_limit_bytes(entry));
  return result;
}

/* ---- Memory by address ---- */

static uint64_t product(uint64_t a, uint64_t b) {
  uint64_t bytes;
  return __builtin_mul_overflow(a, b, &bytes) ? UINT64_MAX : bytes;
}

static uint64_t pitched(uint64_t width, uint64_t height) {
  return product((width / PITCH_ALIGNMENT + (width % PITCH_ALIGNMENT != 0)) * PITCH_ALIGNMENT, height);
}

/* GUESS bytes are taken before the driver is asked, and SIZE is what it gave. */
#define ALLOCATE(name, parameters, arguments, GUESS, SIZE, WEIGHT, FREE)    \
  CUresult name parameters {                                                \
    const uint64_t guess = GUESS;                                           \
    const int entry = guess == 0 || pointer == NULL ? -1 : limited_here();  \
    struct charge charge;                                                   \
    if (entry < 0) return real.name arguments;                              \
    if (!charge_begin(&charge, entry, guess, WEIGHT)) return refuse(entry); \
    const CUresult result = real.name arguments;                            \
    if (result != CUDA_SUCCESS) {                                           \
      charge_drop(&charge);                                                 \
      return result;                                                        \
    }                                                                       \
    if (!charge_settle(&charge, SIZE)) {                                    \
      real.FREE(*pointer);                                                  \
      charge_drop(&charge);                                                 \
      return refuse(entry);                                                 \
    }                                                                       \
    charge_keep(&charge, KIND_MEMORY, *pointer, NULL);                      \
    return result;                                                          \
  }

ALLOCATE(cuMemAlloc_v2, (CUdeviceptr * pointer, size_t bytes), (pointer, bytes), bytes, bytes, WEIGHT_EXACT,
         cuMemFree_v2)
ALLOCATE(cuMemAlloc, (CUdeviceptr_v1 * pointer, unsigned int bytes), (pointer, bytes), bytes, bytes,
         WEIGHT_EXACT, cuMemFree)
ALLOCATE(cuMemAllocPitch_v2,
         (CUdeviceptr * pointer, size_t* pitch, size_t width, size_t height, unsigned int element),
         (pointer, pitch, width, height, element), pitched(width, height), product(*pitch, height),
         WEIGHT_EXACT, cuMemFree_v2)
ALLOCATE(cuMemAllocPitch,
         (CUdeviceptr_v1 * pointer, unsigned int* pitch, unsigned int width, unsigned int height,
          unsigned int element),
         (pointer, pitch, width, height, element), pitched(width, height), product(*pitch, height),
         WEIGHT_EXACT, cuMemFree)
/* The driver moves it between the card and the machine: it counts as if all of it were on the card. */
ALLOCATE(cuMemAllocManaged, (CUdeviceptr * pointer, size_t bytes, unsigned int flags),
         (pointer, bytes, flags), bytes, bytes, WEIGHT_BESIDE, cuMemFree_v2)

/* What is not known may be memory of a pool. */
#define RELEASE(name, parameters, arguments, KIND, KEY) \
  CUresult name parameters {                            \
    struct release release;                             \
    if (!is_counted()) return real.name arguments;      \
    release_begin(&release, KIND, KEY);                 \
    const CUresult result = real.name arguments;        \
    release_end(&release, result);                      \
    if (!release.found) set_all_loose();                \
    return result;                                      \
  }

RELEASE(cuMemFree_v2, (CUdeviceptr pointer), (pointer), KIND_MEMORY, pointer)
RELEASE(cuMemFree, (CUdeviceptr_v1 pointer), (pointer), KIND_MEMORY, pointer)
/* ---- What others allocated: its size is known when it is there ---- */

#define IMPORT(name, parameters, arguments, CLOSE)                                     \
  CUresult name parameters {                                                           \
    const int entry = pointer == NULL ? -1 : limited_here();                           \
    if (entry < 0) return real.name arguments;                                         \
    size_t size = 0;                                                                   \
    for (int tries = 0; tries < 2; ++tries) {                                          \
      struct charge charge;                                                            \
      if (!charge_begin(&charge, entry, size, WEIGHT_BESIDE)) break;                   \
      const CUresult result = real.name arguments;                                     \
      if (result == CUDA_SUCCESS) real.cuMemGetAddressRange_v2(NULL, &size, *pointer); \
      if (result == CUDA_SUCCESS && charge_settle(&charge, size)) {                    \
        charge_keep(&charge, KIND_MEMORY, *pointer, NULL);                             \
        return result;                                                                 \
      }                                                                                \
      if (result == CUDA_SUCCESS) real.CLOSE(*pointer);                                \
      charge_drop(&charge);                                                            \
      if (result != CUDA_SUCCESS) return result;                                       \
    }                                                                                  \
    return refuse(entry);                                                              \
  }

IMPORT(cuIpcOpenMemHandle, (CUdeviceptr * pointer, CUipcMemHandle handle, unsigned int flags),
       (pointer, handle, flags), cuIpcCloseMemHandle)
IMPORT(cuIpcOpenMemHandle_v2, (CUdeviceptr * pointer, CUipcMemHandle handle, unsigned int flags),
       (pointer, handle, flags), cuIpcCloseMemHandle)
IMPORT(cuMemPoolImportPointer, (CUdeviceptr * pointer, CUmemoryPool pool, CUmemPoolPtrExportData* data),
       (pointer, pool, data), cuMemFree_v2)
RELEASE(cuIpcCloseMemHandle, (CUdeviceptr pointer), (pointer), KIND_MEMORY, pointer)

CUresult cuImportExternalMemory(CUexternalMemory* memory,
                                const CUDA_EXTERNAL_MEMORY_HANDLE_DESC* description) {
  const int entry = memory == NULL || description == NULL ? -1 : limited_here();
  struct charge charge;
  if (entry < 0) return real.cuImportExternalMemory(memory, description);
  if (!charge_begin(&charge, entry, description->size, WEIGHT_BESIDE)) return refuse(entry);
  const CUresult result = real.cuImportExternalMemory(memory, description);
  if (result == CUDA_SUCCESS)
    charge_keep(&charge, KIND_EXTERNAL, (uintptr_t)*memory, NULL);
  else
    charge_drop(&charge);
  return result;
}
RELEASE(cuDestroyExternalMemory, (CUexternalMemory memory), (memory), KIND_EXTERNAL, (uintptr_t)memory)

/* ---- Arrays: the driver only says what it needs for some, so what it took is measured ---- */

static uint64_t array_bytes(uint64_t width, uint64_t height, uint64_t depth, CUarray_format format,
                            unsigned int channels) {
  static const unsigned char sizes[] = {
      [0x01] = 1, [0x02] = 2, [0x03] = 4, [0x08] = 1, [0x09] = 2, [0x0a] = 4, [0x10] = 2, [0x20] = 4};
  const bool known = format >= 0 && format < (int)sizeof sizes && sizes[format] != 0;
  const uint64_t layers = product(height ? height : 1, depth ? depth : 1);
  return product(product(width, layers), known ? (uint64_t)sizes[format] * channels : 1);
}

#define FLAT_BYTES(d) (d) == NULL ? 0 : array_bytes((d)->Width, (d)->Height, 0, (d)->Format, (d)->NumChannels)
/* 0x40: sparse, 0x80: mapped later. */
#define DEEP_BYTES(d)                \
  (d) == NULL || ((d)->Flags & 0xc0) \
      ? 0                            \
      : array_bytes((d)->Width, (d)->Height, (d)->Depth, (d)->Format, (d)->NumChannels)

#define ARRAY(name, parameters, arguments, LEAST, DESTROY)                \
  CUresult name parameters {                                              \
    const int entry = array == NULL ? -1 : limited_here();                \
    struct implied implied;                                               \
    if (entry < 0) return real.name arguments;                            \
    if (!implied_begin(&implied, entry, LEAST)) return refuse(entry);     \
    const CUresult result = real.name arguments;                          \
    const uint64_t key = result == CUDA_SUCCESS ? (uintptr_t)*array : 0;  \
    if (implied_end(&implied, result, KIND_ARRAY, key, 0)) return result; \
    real.DESTROY(*array);                                                 \
    implied_undone(&implied);                                             \
    return refuse(entry);                                                 \
  }

ARRAY(cuArrayCreate_v2, (CUarray * array, const CUDA_ARRAY_DESCRIPTOR* description), (array, description),
      FLAT_BYTES(description), cuArrayDestroy)
ARRAY(cuArrayCreate, (CUarray * array, const CUDA_ARRAY_DESCRIPTOR_v1* description), (array, description),
      FLAT_BYTES(description), cuArrayDestroy)
ARRAY(cuArray3DCreate_v2, (CUarray * array, const CUDA_ARRAY3D_DESCRIPTOR* description), (array, description),
      DEEP_BYTES(description), cuArrayDestroy)
ARRAY(cuArray3DCreate, (CUarray * array, const CUDA_ARRAY3D_DESCRIPTOR_v1* description), (array, description),
      DEEP_BYTES(description), cuArrayDestroy)
ARRAY(cuMipmappedArrayCreate,
      (CUmipmappedArray * array, const CUDA_ARRAY3D_DESCRIPTOR* description, unsigned int levels),
      (array, description, levels), DEEP_BYTES(description), cuMipmappedArrayDestroy)
RELEASE(cuArrayDestroy, (CUarray array), (array), KIND_ARRAY, (uintptr_t)array)
RELEASE(cuMipmappedArrayDestroy, (CUmipmappedArray array), (array), KIND_ARRAY, (uintptr_t)array)

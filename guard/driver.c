#define _GNU_SOURCE
#include "guard/driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "guard/glibc.h"

/* Whoever sets a container up points this name at the driver's file, so that one build of ours stands before
 * all drivers. It is what our library needs, so it is loaded when ours is. */
#define DRIVER_LIBRARY "libdrover-driver-cuda.so.1"

struct driver real;

static CUresult lacking(void) {
  return CUDA_ERROR_NOT_FOUND;
}

struct cover {
  const char* symbol;
  const char* name;
  void* ours;
  int since;
  int stream;
  void** driver; /* points to the driver's */
};

#define COVER(symbol, parameters, name, since, stream) \
  {#symbol, name, (void*)(symbol), since, stream, (void**)&real.symbol},
static const struct cover covers[] = {COVERED(COVER)
                                      /* The second revision of this name got a symbol of its own. */
                                      {"", "cuGraphInstantiate", (void*)cuGraphInstantiateWithFlags, 12000, 0,
                                       (void**)&real.cuGraphInstantiateWithFlags}};
enum { COVERS = sizeof covers / sizeof covers[0] };

/* Our own reference keeps it, whoever unloads what. */
__attribute__((constructor)) static void resolve_driver(void) {
  void* library = dlopen(DRIVER_LIBRARY, RTLD_LAZY | RTLD_NOLOAD);
#define RESOLVE(symbol, ...)                                              \
  {                                                                       \
    void* const found = library != NULL ? dlsym(library, #symbol) : NULL; \
    *(void**)&real.symbol = found != NULL ? found : (void*)lacking;       \
  }
  COVERED(RESOLVE)
  ASKED(RESOLVE)
#undef RESOLVE
}

static int is_asked_for(const struct cover* cover, const char* name) {
  return strcmp(cover->name, name) == 0 || strcmp(cover->symbol, name) == 0;
}

/* The latest revision that a caller of that version may get; null when there is none. */
static const struct cover* best_cover(const char* name, int version, cuuint64_t flags, const void* answer) {
  const int stream = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM ? 1 : 2;
  const struct cover* best = NULL;
  for (int i = 0; i < COVERS; ++i) {
    const struct cover* cover = &covers[i];
    if (!is_asked_for(cover, name) || cover->since > version) continue;
    if (cover->stream != 0 && cover->stream != stream) continue;
    if (answer != NULL && *cover->driver != answer) continue;
    if (best == NULL || cover->since >= best->since) best = cover;
  }
  return best;
}

/* The driver's answer says which revision the caller is meant to get. Only when it is none that the loader
 * knows, the name, the version and the stream say so. */
void* covered_function(const char* name, void* answer, int version, cuuint64_t flags) {
  const struct cover* cover = best_cover(name, version, flags, answer);
  for (int i = 0; cover == NULL && i < COVERS; ++i)
    if (*covers[i].driver == answer && is_asked_for(&covers[i], name)) cover = &covers[i];
  if (cover == NULL) cover = best_cover(name, version, flags, NULL);
  return cover == NULL ? NULL : cover->ours;
}

int driver_neighbour(const char* file, char path[DRIVER_PATH_SIZE]) {
  Dl_info info;
  if (dladdr((void*)real.cuDeviceGetCount, &info) == 0 || info.dli_fname == NULL) return 0;
  const char* slash = strrchr(info.dli_fname, '/');
  const int folder = slash == NULL ? 0 : (int)(slash - info.dli_fname) + 1;
  const int length = snprintf(path, DRIVER_PATH_SIZE, "%.*s%s", folder, info.dli_fname, file);
  return length > 0 && length < DRIVER_PATH_SIZE;
}

static CUresult answer(CUresult result, const char* symbol, void** function, int version, cuuint64_t flags) {
  if (result != CUDA_SUCCESS || symbol == NULL || function == NULL || *function == NULL) return result;
  void* const ours = covered_function(symbol, *function, version, flags);
  if (ours != NULL) *function = ours;
  return result;
}

CUresult cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags) {
  return answer(real.cuGetProcAddress(symbol, function, version, flags), symbol, function, version, flags);
}

CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* status) {
  return answer(real.cuGetProcAddress_v2(symbol, function, version, flags, status), symbol, function, version,
                flags);
}

/* Without a flag the stream is the thread's. */
CUresult cuGetProcAddress_v2_ptsz(const char* symbol, void** function, int version, cuuint64_t flags,
                                  CUdriverProcAddressQueryResult* status) {
  const cuuint64_t meant = flags & CU_GET_PROC_ADDRESS_LEGACY_STREAM
                               ? flags
                               : flags | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  return answer(real.cuGetProcAddress_v2_ptsz(symbol, function, version, flags, status), symbol, function,
                version, meant);
}

/* A client of CUDA's driver interface in plain C, written from the public reference alone: it loads the
 * library that the loader finds (or that CUDA_LIBRARY names), and does what its arguments say, one after
 * another. Every line that it prints is flushed at once.
 *
 *   list          driver VERSION, and a line for each GPU:
 *                 gpu INDEX UUID PCI TOTAL_MIB CAPABILITY MULTIPROCESSORS NAME...
 *   gpu INDEX     makes a context on that GPU, which is current from then on (else GPU 0, when one is needed)
 *   info          memory FREE_MIB TOTAL_MIB
 *   hold MIB      takes so much memory: held MIB
 *   fill MIB      takes pieces of that size until there is no room: filled MIB
 *   free          gives all back that was taken
 *   spin US       keeps the GPU busy for so many microseconds, and does not wait
 *   spins US N    N times, one after another, and waits: spun MS
 *   sync          waits for the GPU
 *   sleep SECONDS
 *
 * Without arguments: list. Exit status: 0; 1 with the call that failed on stderr; 2 when memory was refused.
 */
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu/cuda_abi.h"

enum { MAX_GPUS = 64, MAX_PIECES = 1 << 20, MIB = 1 << 20, NO_MEMORY = 2 };

static const char kernel[] =
    ".version 6.0\n.target sm_30\n.address_size 64\n.visible .entry spin(.param .u64 microseconds)\n{\n  "
    "ret;\n}\n";

/* Every function that is used, resolved by name. */
#define FUNCTIONS(X)          \
  X(cuInit)                   \
  X(cuGetErrorName)           \
  X(cuDriverGetVersion)       \
  X(cuDeviceGetCount)         \
  X(cuDeviceGet)              \
  X(cuDeviceGetName)          \
  X(cuDeviceGetUuid)          \
  X(cuDeviceGetPCIBusId)      \
  X(cuDeviceTotalMem_v2)      \
  X(cuDeviceGetAttribute)     \
  X(cuDevicePrimaryCtxRetain) \
  X(cuCtxSetCurrent)          \
  X(cuCtxSynchronize)         \
  X(cuMemGetInfo_v2)          \
  X(cuMemAlloc_v2)            \
  X(cuMemFree_v2)             \
  X(cuModuleLoadData)         \
  X(cuModuleGetFunction)      \
  X(cuLaunchKernel)

#define DECLARE(name) __typeof__(&name) name;
static struct {
  FUNCTIONS(DECLARE)
} cuda;

static CUfunction spin_kernel;
static int has_context;
static CUdeviceptr pieces[MAX_PIECES];
static int held;

static void die(const char* call, const char* reason) {
  fprintf(stderr, "cuda_check: %s: %s\n", call, reason);
  exit(1);
}

static const char* name_of(CUresult result) {
  const char* name = "an unknown error";
  cuda.cuGetErrorName(result, &name);
  return name;
}

/* Calls CUDA and gives up unless it succeeds. */
#define MUST(name, ...)                                                \
  do {                                                                 \
    CUresult must_result = cuda.name(__VA_ARGS__);                     \
    if (must_result != CUDA_SUCCESS) die(#name, name_of(must_result)); \
  } while (0)

static void load(void) {
  const char* path = getenv("CUDA_LIBRARY");
  void* library = dlopen(path ? path : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) die("dlopen", dlerror());
#define RESOLVE(name)                          \
  *(void**)&cuda.name = dlsym(library, #name); \
  if (!cuda.name) die("dlsym", #name " is missing");
  FUNCTIONS(RESOLVE)
}

static long number(const char* text) {
  char* end = NULL;
  const long value = text ? strtol(text, &end, 10) : -1;
  if (!text || *end || end == text || value < 0) die("argument", "expected a number");
  return value;
}

static void use_gpu(int index) {
  CUdevice device = 0;
  CUcontext context = NULL;
  CUmodule module = NULL;
  MUST(cuDeviceGet, &device, index);
  MUST(cuDevicePrimaryCtxRetain, &context, device);
  MUST(cuCtxSetCurrent, context);
  MUST(cuModuleLoadData, &module, kernel);
  MUST(cuModuleGetFunction, &spin_kernel, module, "spin");
  has_context = 1;
}

static void need_context(void) {
  if (!has_context) use_gpu(0);
}

static void list(void) {
  int version = 0;
  int count = 0;
  MUST(cuDriverGetVersion, &version);
  MUST(cuDeviceGetCount, &count);
  printf("driver %d.%d\n", version / 1000, version % 1000 / 10);
  for (int i = 0; i < count; ++i) {
    CUdevice device = 0;
    CUuuid uuid;
    char name[256];
    char pci[32];
    size_t total = 0;
    int major = 0;
    int minor = 0;
    int multiprocessors = 0;
    MUST(cuDeviceGet, &device, i);
    MUST(cuDeviceGetName, name, sizeof(name), device);
    MUST(cuDeviceGetUuid, &uuid, device);
    MUST(cuDeviceGetPCIBusId, pci, sizeof(pci), device);
    MUST(cuDeviceTotalMem_v2, &total, device);
    MUST(cuDeviceGetAttribute, &major, 75, device);
    MUST(cuDeviceGetAttribute, &minor, 76, device);
    MUST(cuDeviceGetAttribute, &multiprocessors, 16, device);
    printf("gpu %d GPU-", i);
    for (int byte = 0; byte < 16; ++byte) {
      if (byte == 4 || byte == 6 || byte == 8 || byte == 10) printf("-");
      printf("%02x", (unsigned char)uuid.bytes[byte]);
    }
    printf(" %s %zu %d.%d %d %s\n", pci, total / MIB, major, minor, multiprocessors, name);
  }
}

/* Whether there was room. */
static int hold(size_t mib) {
  need_context();
  if (held == MAX_PIECES) die("hold", "too many pieces");
  const CUresult result = cuda.cuMemAlloc_v2(&pieces[held], mib * MIB);
  if (result == CUDA_SUCCESS) ++held;
  if (result != CUDA_SUCCESS && result != CUDA_ERROR_OUT_OF_MEMORY) die("cuMemAlloc", name_of(result));
  return result == CUDA_SUCCESS;
}

static void spin(unsigned long long microseconds) {
  void* parameters[] = {&microseconds};
  need_context();
  MUST(cuLaunchKernel, spin_kernel, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL);
}

static double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e3 * (double)now.tv_sec + (double)now.tv_nsec / 1e6;
}

static void spins(unsigned long long microseconds, long count) {
  need_context();
  const double begin = now_ms();
  for (long i = 0; i < count; ++i) spin(microseconds);
  MUST(cuCtxSynchronize, );
  printf("spun %.1f\n", now_ms() - begin);
}

static void pause_for(long seconds) {
  const struct timespec duration = {seconds, 0};
  nanosleep(&duration, NULL);
}

/* Does one verb; how many arguments it took, or 0 when it is none. Memory that was refused ends the program.
 */
static int run(char** arguments) {
  const char* verb = arguments[0];
  const char* first = arguments[1];
  if (!strcmp(verb, "list")) {
    list();
    return 1;
  }
  if (!strcmp(verb, "gpu")) {
    use_gpu((int)number(first));
    return 2;
  }
  if (!strcmp(verb, "info")) {
    size_t free_bytes = 0;
    size_t total = 0;
    need_context();
    MUST(cuMemGetInfo_v2, &free_bytes, &total);
    printf("memory %zu %zu\n", free_bytes / MIB, total / MIB);
    return 1;
  }
  if (!strcmp(verb, "hold")) {
    if (!hold((size_t)number(first))) {
      fprintf(stderr, "cuda_check: no room for %s MiB\n", first);
      exit(NO_MEMORY);
    }
    printf("held %s\n", first);
    return 2;
  }
  if (!strcmp(verb, "fill")) {
    const long mib = number(first);
    long filled = 0;
    while (hold((size_t)mib)) filled += mib;
    printf("filled %ld\n", filled);
    return 2;
  }
  if (!strcmp(verb, "free")) {
    while (held > 0) MUST(cuMemFree_v2, pieces[--held]);
    return 1;
  }
  if (!strcmp(verb, "spin")) {
    spin((unsigned long long)number(first));
    return 2;
  }
  if (!strcmp(verb, "spins")) {
    spins((unsigned long long)number(first), number(first ? arguments[2] : NULL));
    return 3;
  }
  if (!strcmp(verb, "sync")) {
    need_context();
    MUST(cuCtxSynchronize, );
    return 1;
  }
  if (!strcmp(verb, "sleep")) {
    pause_for(number(first));
    return 2;
  }
  return 0;
}

int main(int count, char** arguments) {
  static char* only_list[] = {"list", NULL};
  setvbuf(stdout, NULL, _IOLBF, 0);
  load();
  MUST(cuInit, 0);
  char** next = count > 1 ? arguments + 1 : only_list;
  while (*next) {
    const int taken = run(next);
    if (taken == 0) die(*next, "unknown; see the head of check.c for what there is");
    next += taken;
  }
  return 0;
}

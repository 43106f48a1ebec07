/* A client of CUDA's driver interface in plain C, written from the public reference alone: it loads the
 * library that the loader finds (or that CUDA_LIBRARY names), and does what its arguments say, one after
 * another. Every line that it prints is flushed at once.
 *
 *   list          driver VERSION, and a line for each GPU:
 *                 gpu INDEX UUID PCI TOTAL_MIB CAPABILITY MULTIPROCESSORS NAME...
 *   gpu INDEX     makes a context on that GPU, which is current from then on (else GPU 0, when one is needed)
 *   info          memory FREE_MIB TOTAL_MIB
 *   hold MIB      takes so much memory: held MIB
 *   insist MIB    the same, and asks again until it is given
 *   fill MIB      takes pieces of that size until there is no room: filled MIB
 *   free          gives all back that was taken
 *   spin US       keeps the GPU busy for so many microseconds, and does not wait
 *   spins US N    N times, one after another, and waits: spun MS
 *   share US SECONDS     keeps the GPU busy for so long with such kernels, four of them given at a time:
 *                 shared KERNELS MS LOOPS_PER_US
 *   launches N    launches an empty kernel so often: launched NS BEST_NS, of the median and of the best tenth
 *   allocs N LIVE takes and gives back 2 MiB so often, while LIVE small pieces are held: allocated NS BEST_NS
 *   sync          waits for the GPU
 *   sleep SECONDS
 *   until MS      waits until the monotonic clock of the machine says so
 *
 * How long a loop of a kernel takes is measured before the first spin, which others on the same GPU disturb:
 * LOOPS_PER_US in the environment says what it is.
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

enum {
  MAX_GPUS = 64,
  MAX_PIECES = 1 << 20,
  MIB = 1 << 20,
  NO_MEMORY = 2,
  BATCH = 200, /* launches that no queue is too short for */
  SMALL = 4096,
  AT_A_TIME = 4,
};

/* What keeps a real GPU busy is the number of turns of a loop: clocks go on while a GPU does something else
 * for others. A simulated one goes by the first parameter. What the loop reads could be asked for, so that no
 * compiler leaves it out. */
static const char kernels[] =
    ".version %s\n.target sm_%d%d\n.address_size 64\n"
    ".visible .entry empty()\n{\n  ret;\n}\n"
    ".visible .entry spin(.param .u64 microseconds, .param .u64 loops, .param .u64 result)\n{\n"
    "  .reg .pred %%p;\n  .reg .u64 %%left, %%sum, %%now, %%to;\n"
    "  ld.param.u64 %%left, [loops];\n  ld.param.u64 %%to, [result];\n  mov.u64 %%sum, 0;\n"
    "again:\n  setp.eq.u64 %%p, %%left, 0;\n  @%%p bra done;\n"
    "  mov.u64 %%now, %%clock64;\n  add.u64 %%sum, %%sum, %%now;\n  sub.u64 %%left, %%left, 1;\n  bra "
    "again;\n"
    "done:\n  setp.eq.u64 %%p, %%to, 0;\n  @%%p ret;\n  st.global.u64 [%%to], %%sum;\n  ret;\n}\n";

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
  X(cuEventCreate)            \
  X(cuEventRecord)            \
  X(cuEventSynchronize)       \
  X(cuLaunchKernel)

#define DECLARE(name) __typeof__(&name) name;
static struct {
  FUNCTIONS(DECLARE)
} cuda;

static CUfunction spin_kernel;
static CUfunction empty_kernel;
static double loops_per_us;
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
  const long value = strtol(text, &end, 10);
  if (*end || end == text || value < 0) die(text, "expected a number");
  return value;
}

static void load_kernels(CUdevice device) {
  char text[2048];
  CUmodule module = NULL;
  int major = 0;
  int minor = 0;
  MUST(cuDeviceGetAttribute, &major, 75, device);
  MUST(cuDeviceGetAttribute, &minor, 76, device);
  /* Code for an older GPU runs on a newer one, and every driver that is in use knows 7.5. */
  const int turing = major * 10 + minor >= 75;
  snprintf(text, sizeof(text), kernels, turing ? "6.3" : "6.0", turing ? 7 : major, turing ? 5 : minor);
  MUST(cuModuleLoadData, &module, text);
  MUST(cuModuleGetFunction, &spin_kernel, module, "spin");
  MUST(cuModuleGetFunction, &empty_kernel, module, "empty");
}

static void use_gpu(int index) {
  CUdevice device = 0;
  CUcontext context = NULL;
  MUST(cuDeviceGet, &device, index);
  MUST(cuDevicePrimaryCtxRetain, &context, device);
  MUST(cuCtxSetCurrent, context);
  load_kernels(device);
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

static double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e3 * (double)now.tv_sec + (double)now.tv_nsec / 1e6;
}

static void launch_spin(unsigned long long microseconds, unsigned long long loops) {
  unsigned long long nowhere = 0;
  void* parameters[] = {&microseconds, &loops, &nowhere};
  MUST(cuLaunchKernel, spin_kernel, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL);
}

/* How often a real GPU loops in a microsecond: the best of some tries, since others may use it too. Loops of
 * twice the length take so much longer; what a launch takes is in both. */
static void measure_loops(void) {
  const unsigned long long loops = 20000;
  const char* known = getenv("LOOPS_PER_US");
  if (known && (loops_per_us = strtod(known, NULL)) > 0) return;
  double shortest[2] = {1e9, 1e9};
  for (int i = 0; i < 20; ++i) {
    const int twice = i % 2;
    const double begin = now_ms();
    launch_spin(0, loops << twice);
    MUST(cuCtxSynchronize, );
    const double took = now_ms() - begin;
    if (took < shortest[twice]) shortest[twice] = took;
  }
  const double difference_us = 1e3 * (shortest[1] - shortest[0]);
  loops_per_us = difference_us > 1 ? (double)loops / difference_us : 1;
}

static void spin(unsigned long long microseconds) {
  need_context();
  if (loops_per_us == 0) measure_loops();
  launch_spin(microseconds, (unsigned long long)((double)microseconds * loops_per_us));
}

static void spins(unsigned long long microseconds, long count) {
  spin(0);
  MUST(cuCtxSynchronize, );
  const double begin = now_ms();
  for (long i = 0; i < count; ++i) spin(microseconds);
  MUST(cuCtxSynchronize, );
  printf("spun %.1f\n", now_ms() - begin);
}

static void share(unsigned long long microseconds, long seconds) {
  CUevent events[AT_A_TIME];
  long count = 0;
  spin(0);
  MUST(cuCtxSynchronize, );
  for (int i = 0; i < AT_A_TIME; ++i) MUST(cuEventCreate, &events[i], 0);
  const double begin = now_ms();
  for (; now_ms() - begin < 1e3 * (double)seconds; ++count) {
    if (count >= AT_A_TIME) MUST(cuEventSynchronize, events[count % AT_A_TIME]);
    spin(microseconds);
    MUST(cuEventRecord, events[count % AT_A_TIME], NULL);
  }
  MUST(cuCtxSynchronize, );
  printf("shared %ld %.1f %.2f\n", count, now_ms() - begin, loops_per_us);
}

static int compare(const void* left, const void* right) {
  const double a = *(const double*)left;
  const double b = *(const double*)right;
  return (a > b) - (a < b);
}

/* Does `batch` calls at a time, `count` in all, and waits for the GPU in between, which is not measured. */
static void measure(const char* word, long count, long batch, void (*call)(void)) {
  const long batches = (count + batch - 1) / batch;
  double* ns = calloc((size_t)batches + 1, sizeof(double));
  if (!ns) die(word, "no memory");
  for (long i = 0; i <= batches; ++i) { /* the first is not counted */
    const double begin = now_ms();
    for (long j = 0; j < batch; ++j) call();
    ns[i ? i - 1 : 0] = (now_ms() - begin) * 1e6 / (double)batch;
    MUST(cuCtxSynchronize, );
  }
  qsort(ns, (size_t)batches, sizeof(double), compare);
  printf("%s %.1f %.1f\n", word, ns[batches / 2], ns[batches / 10]);
  free(ns);
}

static void launch_empty(void) {
  MUST(cuLaunchKernel, empty_kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
}

static void take_and_give_back(void) {
  CUdeviceptr address = 0;
  MUST(cuMemAlloc_v2, &address, 2 * MIB);
  MUST(cuMemFree_v2, address);
}

static void give_all_back(void) {
  while (held > 0) MUST(cuMemFree_v2, pieces[--held]);
}

static void allocations(long count, long live) {
  need_context();
  for (long i = 0; i < live; ++i) {
    if (held == MAX_PIECES) die("allocs", "too many pieces");
    MUST(cuMemAlloc_v2, &pieces[held], SMALL);
    ++held;
  }
  measure("allocated", count, 10, take_and_give_back);
  give_all_back();
}

static void pause_for(long seconds) {
  const struct timespec duration = {seconds, 0};
  nanosleep(&duration, NULL);
}

/* The verbs: what each does with the arguments that follow it. */
static void run_list(char** arguments) {
  (void)arguments;
  list();
}

static void run_gpu(char** arguments) {
  use_gpu((int)number(arguments[0]));
}

static void run_info(char** arguments) {
  size_t free_bytes = 0;
  size_t total = 0;
  (void)arguments;
  need_context();
  MUST(cuMemGetInfo_v2, &free_bytes, &total);
  printf("memory %zu %zu\n", free_bytes / MIB, total / MIB);
}

/* Memory that was refused ends the program. */
static void run_hold(char** arguments) {
  if (!hold((size_t)number(arguments[0]))) {
    fprintf(stderr, "cuda_check: no room for %s MiB\n", arguments[0]);
    exit(NO_MEMORY);
  }
  printf("held %s\n", arguments[0]);
}

static void run_insist(char** arguments) {
  const struct timespec pause = {0, 20 * 1000000};
  while (!hold((size_t)number(arguments[0]))) nanosleep(&pause, NULL);
  printf("held %s\n", arguments[0]);
}

static void run_fill(char** arguments) {
  const long mib = number(arguments[0]);
  long filled = 0;
  while (hold((size_t)mib)) filled += mib;
  printf("filled %ld\n", filled);
}

static void run_free(char** arguments) {
  (void)arguments;
  give_all_back();
}

static void run_spin(char** arguments) {
  spin((unsigned long long)number(arguments[0]));
}

static void run_spins(char** arguments) {
  spins((unsigned long long)number(arguments[0]), number(arguments[1]));
}

static void run_share(char** arguments) {
  share((unsigned long long)number(arguments[0]), number(arguments[1]));
}

static void run_launches(char** arguments) {
  need_context();
  measure("launched", number(arguments[0]), BATCH, launch_empty);
}

static void run_allocs(char** arguments) {
  allocations(number(arguments[0]), number(arguments[1]));
}

static void run_sync(char** arguments) {
  (void)arguments;
  need_context();
  MUST(cuCtxSynchronize, );
}

static void run_until(char** arguments) {
  const double left = (double)number(arguments[0]) - now_ms();
  const long long ns = left > 0 ? (long long)(1e6 * left) : 0;
  const struct timespec duration = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
  nanosleep(&duration, NULL);
}

static void run_sleep(char** arguments) {
  pause_for(number(arguments[0]));
}

static const struct verb {
  const char* name;
  int arguments;
  void (*run)(char** arguments);
} verbs[] = {
    {"list", 0, run_list},   {"gpu", 1, run_gpu},           {"info", 0, run_info},
    {"hold", 1, run_hold},   {"fill", 1, run_fill},         {"free", 0, run_free},
    {"spin", 1, run_spin},   {"spins", 2, run_spins},       {"share", 2, run_share},
    {"sync", 0, run_sync},   {"launches", 1, run_launches}, {"allocs", 2, run_allocs},
    {"sleep", 1, run_sleep}, {"until", 1, run_until},       {"insist", 1, run_insist},
};

static const struct verb* find_verb(const char* name) {
  for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); ++i)
    if (!strcmp(verbs[i].name, name)) return &verbs[i];
  die(name, "unknown; see the head of check.c for what there is");
  return NULL;
}

int main(int count, char** arguments) {
  static char* only_list[] = {"list", NULL};
  setvbuf(stdout, NULL, _IOLBF, 0);
  load();
  MUST(cuInit, 0);
  char** next = count > 1 ? arguments + 1 : only_list;
  while (*next) {
    const struct verb* verb = find_verb(*next++);
    for (int i = 0; i < verb->arguments; ++i)
      if (!next[i]) die(verb->name, "expected a number more");
    verb->run(next);
    next += verb->arguments;
  }
  return 0;
}

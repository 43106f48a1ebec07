#define _GNU_SOURCE
#include "guard/charge.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "guard/figure.h"
#include "guard/glibc.h"
#include "guard/pages.h"
#include "guard/pools.h"

enum {
  BLOCK = 2 << 20, /* bytes: what the driver takes from a card at a time */
  BLOCK_UNITS = BLOCK / GUARD_UNIT,
  SMALL_BEFORE_MEASURING = 32,             /* so that a process never seems to hold much more than it does */
  MEASUREMENT_AGE_NS = 1000 * 1000 * 1000, /* what kernels take while they run is noticed after as long */
  DEVICES = 64,
};

/* What this process has of a GPU, in units where nothing else is said. */
struct tally {
  uint64_t exact;
  uint64_t beside;
  uint64_t small;       /* how many live */
  uint64_t small_since; /* how many came since the last measurement */
  uint64_t small_ended; /* how many ended since */
  uint64_t implied;     /* contexts, code, blocks: the rest of the driver's figure */
  uint64_t measurements;
  uint64_t measured_ns;
  int loose; /* the slot may say more than the process holds */
};

static pthread_rwlock_t counting = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct tally tallies[GUARD_GPUS];
static int device_entries[DEVICES]; /* the entry + 2; 0: not known yet */
static __thread int depth;

static uint64_t load(const uint64_t* value) {
  return __atomic_load_n(value, __ATOMIC_RELAXED);
}

static void add(uint64_t* value, uint64_t units) {
  __atomic_fetch_add(value, units, __ATOMIC_RELAXED);
}

static void subtract(uint64_t* value, uint64_t units) {
  uint64_t before = load(value);
  while (!__atomic_compare_exchange_n(value, &before, before > units ? before - units : 0, true,
                                      __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    continue;
}

/* ---- Which GPU ---- */

static void start_anew(void) {
  const pthread_rwlock_t fresh = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
  counting = fresh;
  memset(tallies, 0, sizeof tallies);
  depth = 0;
  table_forget();
  pools_forget();
}

static void watch_forks(void) {
  pthread_atfork(NULL, NULL, start_anew);
}

int limited_entry(CUdevice device) {
  if (guard_open() == GUARD_UNLIMITED) return -1;
  const bool cached = device >= 0 && device < DEVICES;
  if (cached) {
    const int known = __atomic_load_n(&device_entries[device], __ATOMIC_RELAXED);
    if (known != 0) return known - 2;
  }
  CUuuid uuid;
  if (real.cuDeviceGetUuid_v2(&uuid, device) != CUDA_SUCCESS &&
      real.cuDeviceGetUuid(&uuid, device) != CUDA_SUCCESS)
    return -1;
  pthread_once(&once, watch_forks);
  const int entry = guard_entry((const unsigned char*)uuid.bytes);
  if (cached) __atomic_store_n(&device_entries[device], entry + 2, __ATOMIC_RELAXED);
  return entry;
}

bool is_nested(void) {
  return depth > 0;
}

int limited_device(CUdevice device) {
  return depth > 0 ? -1 : limited_entry(device);
}

bool is_counted(void) {
  return guard_open() != GUARD_UNLIMITED && depth == 0;
}

int limited_here(void) {
  CUdevice device;
  if (guard_open() == GUARD_UNLIMITED || depth > 0) return -1;
  return real.cuCtxGetDevice(&device) == CUDA_SUCCESS ? limited_device(device) : -1;
}

void counting_begin(void) {
  ++depth;
  pthread_rwlock_rdlock(&counting);
}

void counting_end(void) {
  pthread_rwlock_unlock(&counting);
  --depth;
}

void exclusive_begin(void) {
  ++depth;
  pthread_rwlock_wrlock(&counting);
}

void exclusive_end(void) {
  pthread_rwlock_unlock(&counting);
  --depth;
}

/* ---- Measuring ---- */

static uint64_t coarse_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t less(uint64_t a, uint64_t b) {
  return a > b ? a - b : 0;
}

/* Sets the slot to what the process holds, but for `later` units that it has and that are yet to be taken.
 * Nobody allocates. Memory that the driver's figure may leave out is counted beside the rest. */
static void measure(int entry, uint64_t later) {
  struct tally* tally = &tallies[entry];
  const uint64_t known = tally->exact + pools_units(entry, false);
  uint64_t bytes, held;
  /* Less than was certainly given is the figure of another process, which has the same pid to another
   * namespace. */
  if (figure_of_process(entry, &bytes) && guard_units(bytes) >= known) {
    const uint64_t figure = guard_units(bytes), rest = less(figure, known + later);
    const uint64_t bound = tally->implied + tally->small_since * BLOCK_UNITS;
    tally->implied = tally->beside > 0 && bound < rest ? bound : rest;
    held = tally->implied + known + tally->beside;
    if (held + later < figure) held = figure - later;
  } else {
    held = known + tally->beside + tally->implied + tally->small * BLOCK_UNITS;
  }
  guard_set_held(entry, held);
  tally->small_since = 0;
  tally->small_ended = 0;
  tally->loose = 0;
  tally->measured_ns = coarse_now_ns();
  add(&tally->measurements, 1);
}

void set_loose(int entry) {
  if (entry >= 0) __atomic_store_n(&tallies[entry].loose, 1, __ATOMIC_RELEASE);
}

void set_all_loose(void) {
  for (int entry = 0; entry < GUARD_GPUS; ++entry) set_loose(entry);
}

static bool is_loose(int entry) {
  return __atomic_load_n(&tallies[entry].loose, __ATOMIC_ACQUIRE) != 0;
}

void tighten(int entry) {
  if (!is_loose(entry)) return;
  exclusive_begin();
  if (is_loose(entry)) measure(entry, 0);
  exclusive_end();
}

void tighten_all(void) {
  for (int entry = 0; entry < GUARD_GPUS; ++entry)
    if (*guard_uuid(entry) != '\0') tighten(entry);
}

static void make_room_while_exclusive(int entry, uint64_t later) {
  pools_units(entry, true);
  if (is_loose(entry)) measure(entry, later);
}

void make_room(int entry) {
  exclusive_begin();
  make_room_while_exclusive(entry, 0);
  exclusive_end();
}

CUresult refuse(int entry) {
  guard_count_refusal(entry);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

/* ---- Memory of a known size ---- */

static bool is_due(int entry) {
  const struct tally* tally = &tallies[entry];
  return load(&tally->small_since) >= SMALL_BEFORE_MEASURING ||
         coarse_now_ns() - load(&tally->measured_ns) >= MEASUREMENT_AGE_NS;
}

static void measure_when_due(int entry) {
  if (!is_due(entry)) return;
  exclusive_begin();
  if (is_due(entry)) measure(entry, 0);
  exclusive_end();
}

static uint32_t charged_units(uint64_t bytes) {
  const uint64_t blocks = bytes / BLOCK + (bytes % BLOCK != 0);
  return blocks < UINT32_MAX / BLOCK_UNITS ? (uint32_t)blocks * BLOCK_UNITS : UINT32_MAX;
}

bool charge_begin(struct charge* charge, int entry, uint64_t bytes, enum weight weight) {
  const bool small = weight == WEIGHT_EXACT && bytes < BLOCK;
  charge->entry = entry;
  charge->units = small ? BLOCK_UNITS : charged_units(bytes);
  charge->weight = (uint8_t)(small ? WEIGHT_BLOCK : weight);
  if (!table_reserve()) return false;
  measure_when_due(entry);
  counting_begin();
  if (guard_take(entry, charge->units)) return true;
  counting_end();
  make_room(entry);
  counting_begin();
  if (guard_take(entry, charge->units)) return true;
  counting_end();
  return false;
}

bool charge_settle(struct charge* charge, uint64_t bytes) {
  const uint32_t units = charge->weight == WEIGHT_BLOCK && bytes < BLOCK ? BLOCK_UNITS : charged_units(bytes);
  if (units > charge->units && !guard_take(charge->entry, units - charge->units)) return false;
  if (units < charge->units) guard_give(charge->entry, charge->units - units);
  charge->units = units;
  if (bytes >= BLOCK && charge->weight == WEIGHT_BLOCK) charge->weight = WEIGHT_EXACT;
  return true;
}

void count(int entry, uint32_t units, enum weight weight) {
  struct tally* tally = &tallies[entry];
  if (weight == WEIGHT_EXACT) add(&tally->exact, units);
  if (weight == WEIGHT_BESIDE) add(&tally->beside, units);
  if (weight == WEIGHT_IMPLIED) add(&tally->implied, units);
  if (weight != WEIGHT_BLOCK) return;
  add(&tally->small, 1);
  add(&tally->small_since, 1);
  set_loose(entry);
}

void uncount(int entry, uint32_t units, enum weight weight, bool certain) {
  struct tally* tally = &tallies[entry];
  if (weight == WEIGHT_EXACT) subtract(&tally->exact, units);
  if (weight == WEIGHT_BESIDE) subtract(&tally->beside, units);
  if (weight == WEIGHT_IMPLIED) subtract(&tally->implied, units);
  if (weight == WEIGHT_BLOCK) {
    subtract(&tally->small, 1);
    add(&tally->small_ended, 1);
  }
  if (certain && (weight == WEIGHT_EXACT || weight == WEIGHT_BESIDE))
    guard_give(entry, units);
  else
    set_loose(entry);
}

void charge_keep(const struct charge* charge, enum kind kind, uint64_t key, void* object) {
  struct thing thing = {.key = key,
                        .object = object,
                        .units = charge->units,
                        .kind = (uint8_t)kind,
                        .weight = charge->weight,
                        .entry = (uint8_t)charge->entry};
  CUcontext context;
  if (kind == KIND_MEMORY && real.cuCtxGetCurrent(&context) == CUDA_SUCCESS)
    thing.context = (uintptr_t)context;
  count(charge->entry, charge->units, (enum weight)charge->weight);
  table_put(&thing);
  counting_end();
}

void charge_drop(const struct charge* charge) {
  guard_give(charge->entry, charge->units);
  counting_end();
}

/* ---- Ends ---- */

/* The driver may wait for kernels before it ends something, so nobody waits for that. Whoever measures
 * meanwhile may have counted it or not: then only the next measurement takes it away. */
void release_begin(struct release* release, enum kind kind, uint64_t key) {
  counting_begin();
  release->certain = true;
  release->found = table_take(kind, key, &release->thing);
  if (release->found) release->measurements = load(&tallies[release->thing.entry].measurements);
  pthread_rwlock_unlock(&counting);
}

/* Another process must not be refused for what this one no longer holds, and this one may never ask again. */
static bool must_tell(const struct thing* thing, bool certain) {
  switch (thing->weight) {
    case WEIGHT_IMPLIED:
      return thing->kind != KIND_GRAPH;
    case WEIGHT_BLOCK:
      return load(&tallies[thing->entry].small_ended) >= SMALL_BEFORE_MEASURING;
    default:
      return !certain;
  }
}

void release_end(const struct release* release, CUresult result) {
  const struct thing* thing = &release->thing;
  bool tell = false;
  if (release->found) {
    pthread_rwlock_rdlock(&counting);
    const bool certain =
        release->certain && release->measurements == load(&tallies[thing->entry].measurements);
    if (result == CUDA_SUCCESS)
      uncount(thing->entry, thing->units, (enum weight)thing->weight, certain);
    else
      table_put(thing);
    tell = result == CUDA_SUCCESS && release->certain && must_tell(thing, certain);
    pthread_rwlock_unlock(&counting);
  }
  --depth;
  if (tell) tighten(thing->entry);
}

void forget_context(uint64_t context) {
  struct thing thing;
  while (context != 0 && table_take_of_context(context, &thing))
    uncount(thing.entry, thing.units, (enum weight)thing.weight, true);
}

/* ---- What is not known before ---- */

bool implied_begin(struct implied* implied, int entry, uint64_t least) {
  implied->entry = entry;
  implied->least = (uint32_t)(guard_units(least) < UINT32_MAX ? guard_units(least) : UINT32_MAX);
  if (!table_reserve()) return false;
  exclusive_begin();
  bool taken = guard_take(entry, implied->least);
  if (!taken) {
    make_room_while_exclusive(entry, 0);
    taken = guard_take(entry, implied->least);
  }
  if (!taken) {
    exclusive_end();
    return false;
  }
  figure_of_process(entry, &implied->own_before);
  implied->gpu_known = figure_of_gpu(entry, &implied->gpu_before);
  return true;
}

/* By the driver's figure for the process, or else for the GPU, where others may work too. */
static uint32_t growth(const struct implied* implied) {
  uint64_t now, before = implied->own_before;
  if (!figure_of_process(implied->entry, &now)) {
    if (!implied->gpu_known || !figure_of_gpu(implied->entry, &now)) return implied->least;
    before = implied->gpu_before;
  }
  const uint64_t units = guard_units(less(now, before));
  return (uint32_t)(units < UINT32_MAX ? units : UINT32_MAX);
}

static bool take_grown(const struct implied* implied) {
  const int entry = implied->entry;
  if (implied->grown <= implied->least) {
    guard_give(entry, implied->least - implied->grown);
    return true;
  }
  if (guard_take(entry, implied->grown - implied->least)) return true;
  pools_units(entry, true);
  if (!is_loose(entry)) return guard_take(entry, implied->grown - implied->least);
  measure(entry, implied->grown);
  return guard_take(entry, implied->grown);
}

bool implied_end(struct implied* implied, CUresult result, enum kind kind, uint64_t key, uint64_t context) {
  const int entry = implied->entry;
  implied->grown = result == CUDA_SUCCESS ? growth(implied) : 0;
  if (!take_grown(implied)) return false;
  if (result == CUDA_SUCCESS) {
    const struct thing thing = {.key = key,
                                .context = context,
                                .units = implied->grown,
                                .kind = (uint8_t)kind,
                                .weight = WEIGHT_IMPLIED,
                                .entry = (uint8_t)entry};
    count(entry, implied->grown, WEIGHT_IMPLIED);
    if (kind != KIND_NONE) table_put(&thing);
  }
  exclusive_end();
  return true;
}

void implied_undone(const struct implied* implied) {
  measure(implied->entry, 0);
  exclusive_end();
}

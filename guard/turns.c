#define _GNU_SOURCE
#include "guard/turns.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "guard/charge.h"
#include "guard/glibc.h"
#include "guard/pages.h"

/* Of captures: whoever has it is not hindered by those of others. */
#define RELAXED 2

enum {
  MS = 1000 * 1000,
  IN_FLIGHT_NS = 2 * MS,     /* of unfinished work, in a turn */
  MOST_WAITING_NS = 50 * MS, /* before somebody else's work, when he comes */
  NOT_WAITED_FOR_NS = 150 * MS,
  SAMPLE_NS = MS,       /* between two that are measured, of a stream */
  NAP_NS = 100 * 1000,  /* between looks whose turn it is */
  IDLE_NAP_NS = 5 * MS, /* of the helper, while nobody else wants the GPU */
  LOOKS_UNTIL_SLOT_CHECK = 256,
  WORKS = 64,
  KNOWN = 256,
  STREAMS = 64,
};

enum state { FREE, LAUNCHING, RUNNING };

struct work {
  CUcontext context; /* of the events */
  CUevent begin;
  CUevent end;
  const void* what;
  uint64_t since_ns;    /* it was launched */
  uint64_t expected_ns; /* that it takes */
  enum state state;
};

/* Of one GPU. */
struct lane {
  pthread_mutex_t mutex; /* of all but what is atomic: `known`, and the last two */
  struct work works[WORKS];
  uint32_t unfinished;
  uint64_t looked_ns;   /* at the events */
  uint64_t progress_ns; /* some work was seen to end, or began where there was none */
  struct {
    const void* what;
    uint64_t ns;
  } known[KNOWN];
  uint64_t sampled_ns[STREAMS];
  uint64_t unmeasured_ns; /* of work that was launched since one was measured, as far as it is known */
};

int turns_limited = TURNS_UNKNOWN;
static int only_entry =
    -1; /* of the process's GPU when it has just one: nobody has to be asked which it is */
static const struct guard_turn* turns[GUARD_GPUS];
static struct lane lanes[GUARD_GPUS];
static struct {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  bool started;
  bool wanted; /* something is in flight */
  int over;    /* the process ends */
} helper = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
static pthread_once_t once = PTHREAD_ONCE_INIT;

static uint64_t clock_ns(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void nap(long ns) {
  const struct timespec time = {.tv_nsec = ns};
  clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

static size_t place_of(const void* pointer, size_t places) {
  return (size_t)((uintptr_t)pointer * UINT64_C(0x9E3779B97F4A7C15) >> 40) % places;
}

/* ---- Once in a process ---- */

static void start_anew(void) {
  memset(lanes, 0, sizeof lanes);
  for (int i = 0; i < GUARD_GPUS; ++i) pthread_mutex_init(&lanes[i].mutex, NULL);
  pthread_mutex_init(&helper.mutex, NULL);
  pthread_cond_init(&helper.changed, NULL);
  helper.started = helper.wanted = false;
}

/* The driver may be gone before the helper is. */
static void end_all(void) {
  __atomic_store_n(&helper.over, 1, __ATOMIC_SEQ_CST);
  turns_stop();
  turns_go_on();
}

static void prepare(void) {
  bool limited = false;
  int gpus = 0;
  for (int entry = 0; entry < GUARD_GPUS; ++entry) {
    turns[entry] = guard_turn_of(entry);
    limited |= turns[entry] != NULL;
  }
  if (real.cuDeviceGetCount(&gpus) == CUDA_SUCCESS && gpus == 1) only_entry = limited_entry(0);
  if (limited) {
    pthread_atfork(NULL, NULL, start_anew);
    atexit(end_all);
  }
  __atomic_store_n(&turns_limited, limited ? TURNS_LIMITED : TURNS_NONE, __ATOMIC_RELEASE);
}

/* ---- What is in flight; with the mutex of the lane ---- */

static void tell(int entry) {
  struct guard_use* use = guard_use_of(entry);
  if (use != NULL) __atomic_store_n(&use->in_flight, lanes[entry].unfinished, __ATOMIC_SEQ_CST);
}

static void learn(struct lane* lane, const void* what, uint64_t ns) {
  const size_t place = place_of(what, KNOWN);
  const bool same = lane->known[place].what == what;
  const uint64_t before = same ? lane->known[place].ns : 0;
  __atomic_store_n(&lane->known[place].what, what, __ATOMIC_RELAXED);
  __atomic_store_n(&lane->known[place].ns, ns > before ? ns : (3 * before + ns) / 4, __ATOMIC_RELAXED);
}

/* What is not known yet is as long as may be in flight, so that it runs alone once. */
static uint64_t expected_ns(const struct lane* lane, const void* what) {
  const size_t place = place_of(what, KNOWN);
  return __atomic_load_n(&lane->known[place].what, __ATOMIC_RELAXED) == what
             ? __atomic_load_n(&lane->known[place].ns, __ATOMIC_RELAXED)
             : IN_FLIGHT_NS;
}

static void note(int entry, uint64_t measured, uint64_t longest, uint64_t now) {
  struct lane* lane = &lanes[entry];
  struct guard_use* use = guard_use_of(entry);
  const uint64_t most = now - lane->progress_ns; /* streams overlap */
  lane->progress_ns = now;
  if (use == NULL) return;
  __atomic_fetch_add(&use->busy_ns, measured < most ? measured : most, __ATOMIC_RELAXED);
  if (longest > __atomic_load_n(&use->longest_ns, __ATOMIC_RELAXED))
    __atomic_store_n(&use->longest_ns, longest, __ATOMIC_RELAXED);
  tell(entry);
}

/* Other threads may capture, and then only who says that he does not mind may ask of events. */
static CUstreamCaptureMode exchange_mode(CUstreamCaptureMode mode) {
  real.cuThreadExchangeStreamCaptureMode(&mode);
  return mode;
}

static void look(int entry, bool by_helper) {
  struct lane* lane = &lanes[entry];
  uint64_t measured = 0, longest = 0;
  bool ended = false;
  CUcontext current = NULL;
  const CUstreamCaptureMode before = exchange_mode(RELAXED);
  for (int i = 0; i < WORKS; ++i) {
    struct work* work = &lane->works[i];
    if (work->state != RUNNING) continue;
    if (by_helper && work->context != current && real.cuCtxSetCurrent(work->context) == CUDA_SUCCESS)
      current = work->context;
    const CUresult result = real.cuEventQuery(work->end);
    if (result == CUDA_ERROR_NOT_READY) continue;
    float ms = 0;
    if (result == CUDA_SUCCESS && real.cuEventElapsedTime(&ms, work->begin, work->end) == CUDA_SUCCESS &&
        ms >= 0) {
      const uint64_t ns = (uint64_t)((double)ms * MS);
      learn(lane, work->what, ns);
      measured += ns;
      if (ns > longest) longest = ns;
    }
    work->state = FREE;
    --lane->unfinished;
    ended = true;
  }
  if (current != NULL) real.cuCtxSetCurrent(NULL);
  exchange_mode(before);
  lane->looked_ns = clock_ns(CLOCK_MONOTONIC);
  if (ended) note(entry, measured, longest, lane->looked_ns);
}

/* What of the work in flight is yet to be done, as far as it is known. */
static uint64_t left_ns(const struct lane* lane, uint64_t now) {
  uint64_t total = 0, oldest_ns = 0, first_expected = 0;
  for (int i = 0; i < WORKS; ++i) {
    const struct work* work = &lane->works[i];
    const uint64_t age = now > work->since_ns ? now - work->since_ns : 0;
    if (work->state == FREE || age > NOT_WAITED_FOR_NS) continue;
    total += work->expected_ns;
    if (age < oldest_ns) continue;
    oldest_ns = age;
    first_expected = work->expected_ns;
  }
  const uint64_t run = now > lane->progress_ns ? now - lane->progress_ns : 0;
  return total - (run < first_expected ? run : first_expected);
}

/* ---- The helper: tells when work ends while the program does something else ---- */

static bool is_free(const struct guard_turn* turn) {
  if (__atomic_load_n(&turn->until_ns, __ATOMIC_ACQUIRE) == GUARD_NOBODY_ELSE) return true;
  const uint64_t beat = __atomic_load_n(&turn->beat_ns, __ATOMIC_RELAXED);
  const uint64_t now = clock_ns(CLOCK_MONOTONIC_COARSE);
  return now > beat && now - beat > GUARD_BEAT_NS;
}

/* How long until it looks again; 0: nothing is in flight. */
static long help_once(void) {
  long wait = 0;
  for (int entry = 0; entry < GUARD_GPUS; ++entry) {
    struct lane* lane = &lanes[entry];
    const struct guard_turn* turn = turns[entry];
    if (turn == NULL) continue;
    pthread_mutex_lock(&lane->mutex);
    if (lane->unfinished > 0 && !__atomic_load_n(&helper.over, __ATOMIC_SEQ_CST)) look(entry, true);
    const bool more = lane->unfinished > 0;
    pthread_mutex_unlock(&lane->mutex);
    if (more && !is_free(turn)) wait = NAP_NS;
    if (more && wait == 0) wait = IDLE_NAP_NS;
  }
  return wait;
}

static void* help(void* unused) {
  prctl(PR_SET_TIMERSLACK, 1);
  prctl(PR_SET_NAME, "drover-turns");
  for (;;) {
    pthread_mutex_lock(&helper.mutex);
    while (!helper.wanted) pthread_cond_wait(&helper.changed, &helper.mutex);
    helper.wanted = false;
    pthread_mutex_unlock(&helper.mutex);
    if (__atomic_load_n(&helper.over, __ATOMIC_SEQ_CST)) return unused;
    for (long wait; (wait = help_once()) > 0;) nap(wait);
  }
}

static void call_helper(void) {
  pthread_mutex_lock(&helper.mutex);
  if (!helper.started) {
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the program's own threads */
    helper.started = pthread_create(&thread, NULL, help, NULL) == 0;
    if (helper.started) pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
  }
  helper.wanted = true;
  pthread_cond_signal(&helper.changed);
  pthread_mutex_unlock(&helper.mutex);
}

/* ---- Launches ---- */

static bool is_captured(CUstream stream, bool per_thread) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUresult result =
      per_thread ? real.cuStreamIsCapturing_ptsz(stream, &status) : real.cuStreamIsCapturing(stream, &status);
  if (result == CUDA_ERROR_NOT_FOUND) return false; /* a driver that captures nothing */
  return result != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE;
}

static bool is_sample_due(struct lane* lane, CUstream stream, const void* what) {
  uint64_t* last = &lane->sampled_ns[place_of(stream, STREAMS)];
  const uint64_t unmeasured =
      __atomic_load_n(&lane->unmeasured_ns, __ATOMIC_RELAXED) + expected_ns(lane, what);
  if (unmeasured >= SAMPLE_NS) return true;
  __atomic_store_n(&lane->unmeasured_ns, unmeasured, __ATOMIC_RELAXED); /* a guess: some may be lost */
  const uint64_t now = clock_ns(CLOCK_MONOTONIC_COARSE);
  if (now - __atomic_load_n(last, __ATOMIC_RELAXED) < SAMPLE_NS) return false;
  __atomic_store_n(last, now, __ATOMIC_RELAXED);
  return true;
}

/* A place for work that may be launched now; -1: not yet, -2: it goes on without one. */
static int admit(int entry, const struct guard_turn* turn, const void* what) {
  struct lane* lane = &lanes[entry];
  const bool alone = is_free(turn);
  const uint64_t most = alone ? MOST_WAITING_NS : IN_FLIGHT_NS;
  uint64_t now = clock_ns(CLOCK_MONOTONIC);
  if (!alone && now >= __atomic_load_n(&turn->until_ns, __ATOMIC_ACQUIRE)) return -1;
  uint64_t left = left_ns(lane, now);
  const bool is_full = left >= most || lane->unfinished == WORKS;
  if (lane->unfinished > 0 && (is_full || now - lane->looked_ns > NAP_NS)) {
    look(entry, false);
    now = lane->looked_ns;
    left = left_ns(lane, now);
  }
  if (left >= most) return -1;
  int place = 0;
  while (place < WORKS && lane->works[place].state != FREE) ++place;
  if (place == WORKS) return left == 0 ? -2 : -1; /* none of them is waited for */
  /* Whoever ends the turn after this has looked sees that something is in flight. */
  ++lane->unfinished;
  tell(entry);
  if (!alone && clock_ns(CLOCK_MONOTONIC) >= __atomic_load_n(&turn->until_ns, __ATOMIC_SEQ_CST) &&
      !is_free(turn)) {
    --lane->unfinished;
    tell(entry);
    return -1;
  }
  if (lane->unfinished == 1) lane->progress_ns = now;
  struct work* work = &lane->works[place];
  work->what = what;
  work->since_ns = now;
  work->expected_ns =
      expected_ns(lane, what) + __atomic_exchange_n(&lane->unmeasured_ns, 0, __ATOMIC_RELAXED);
  work->state = LAUNCHING;
  return place;
}

static void ask(struct guard_use* use) {
  __atomic_store_n(&use->asked, __atomic_load_n(&use->asked, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
}

static int wait_for_turn(int entry, const struct guard_turn* turn, const void* what) {
  for (unsigned int looks = 1;; ++looks) {
    pthread_mutex_lock(&lanes[entry].mutex);
    const int place = admit(entry, turn, what);
    pthread_mutex_unlock(&lanes[entry].mutex);
    if (place != -1) return place;
    nap(NAP_NS);
    if (looks % LOOKS_UNTIL_SLOT_CHECK == 0) guard_keep_slot();
    struct guard_use* use = guard_use_of(entry);
    if (use == NULL) return -2; /* nobody would know that it waits */
    ask(use);
  }
}

/* Records the moment before or after the work. */
static bool record(const struct launch* launch, CUevent event) {
  return (launch->per_thread ? real.cuEventRecord_ptsz(event, launch->stream)
                             : real.cuEventRecord(event, launch->stream)) == CUDA_SUCCESS;
}

static bool record_begin(const struct launch* launch, struct work* work) {
  CUcontext context = NULL;
  if (real.cuCtxGetCurrent(&context) != CUDA_SUCCESS) return false;
  if (work->context != context) {
    if (work->context != NULL) {
      real.cuEventDestroy_v2(work->begin);
      real.cuEventDestroy_v2(work->end);
      work->context = NULL;
    }
    if (real.cuEventCreate(&work->begin, 0) != CUDA_SUCCESS) return false;
    if (real.cuEventCreate(&work->end, 0) != CUDA_SUCCESS) {
      real.cuEventDestroy_v2(work->begin);
      return false;
    }
    work->context = context;
  }
  return record(launch, work->begin);
}

static void settle(const struct launch* launch, enum state state) {
  struct lane* lane = &lanes[launch->entry];
  pthread_mutex_lock(&lane->mutex);
  lane->works[launch->place].state = state;
  if (state == FREE) --lane->unfinished;
  tell(launch->entry);
  pthread_mutex_unlock(&lane->mutex);
}

void launch_begin(struct launch* launch, CUstream stream, bool per_thread, const void* what) {
  launch->entry = -1;
  if (__atomic_load_n(&turns_limited, __ATOMIC_ACQUIRE) == TURNS_UNKNOWN) pthread_once(&once, prepare);
  const int entry = only_entry < 0 ? limited_here() : is_nested() ? -1 : only_entry;
  const struct guard_turn* turn = entry < 0 ? NULL : turns[entry];
  struct guard_use* use = turn == NULL ? NULL : guard_use_of(entry);
  if (use == NULL || __atomic_load_n(&helper.over, __ATOMIC_RELAXED)) return;
  ask(use);
  if (is_free(turn) && !is_sample_due(&lanes[entry], stream, what)) return;
  if (is_captured(stream, per_thread)) return;
  const int place = wait_for_turn(entry, turn, what);
  if (place < 0) return;
  *launch = (struct launch){.entry = entry, .place = place, .stream = stream, .per_thread = per_thread};
  const CUstreamCaptureMode before = exchange_mode(RELAXED);
  const bool begun = record_begin(launch, &lanes[entry].works[launch->place]);
  exchange_mode(before);
  if (begun) return;
  settle(launch, FREE);
  launch->entry = -1;
}

void launch_end(const struct launch* launch, CUresult result) {
  if (launch->entry < 0) return;
  const struct work* work = &lanes[launch->entry].works[launch->place];
  const CUstreamCaptureMode before = exchange_mode(RELAXED);
  const bool runs = result == CUDA_SUCCESS && record(launch, work->end);
  exchange_mode(before);
  settle(launch, runs ? RUNNING : FREE);
  if (runs) call_helper();
}

/* ---- Contexts that end ---- */

void turns_stop(void) {
  for (int i = 0; i < GUARD_GPUS; ++i) pthread_mutex_lock(&lanes[i].mutex);
}

void turns_go_on(void) {
  for (int i = GUARD_GPUS - 1; i >= 0; --i) pthread_mutex_unlock(&lanes[i].mutex);
}

void turns_forget(CUcontext context) {
  for (int entry = 0; entry < GUARD_GPUS; ++entry) {
    struct lane* lane = &lanes[entry];
    for (int i = 0; i < WORKS; ++i) {
      struct work* work = &lane->works[i];
      if (work->context == NULL || work->state == LAUNCHING || (context != NULL && work->context != context))
        continue;
      if (work->state == RUNNING) --lane->unfinished;
      work->state = FREE;
      work->context = NULL;
    }
    if (turns[entry] != NULL && lane->looked_ns != 0) tell(entry);
  }
}

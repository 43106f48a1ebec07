#define _GNU_SOURCE
#include "guard/pages.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "guard/glibc.h"

/* Held and not certain yet are counted in one word, so that others never see one without the other. */
#define UNCERTAIN(units) ((uint64_t)(units) << 32 | (units))

enum {
  PATIENCE_NS = 30 * 1000 * 1000, /* with processes whose demand is not decided */
  LONGEST_PATIENCE = 50,          /* as many times that, while none of them is stopped */
  QUICK_TRIES = 8,
  MOMENT_NS = 50 * 1000, /* between later ones */
  MOST_UNITS = 1 << 30,
  MOST_CONTEXT_UNITS = (2 << 20) / (GUARD_UNIT >> 10), /* 2 GiB */
  HIGH_DESCRIPTOR = 1000,
};

static struct {
  pthread_mutex_t mutex;      /* of opening, and of taking a slot */
  pthread_mutex_t contending; /* one thread of a process contends at a time */
  int state;                  /* enum guard_state */
  const struct guard_limits* limits;
  struct guard_account* account;
  int descriptor; /* of the account; closing any descriptor of it would give up the slot */
  int slot;       /* -1: none */
  int count;
  uint64_t own_limit; /* bytes of each GPU, by the environment: UINT64_MAX is none */
  unsigned char uuids[GUARD_GPUS][16];
} pages = {.mutex = PTHREAD_MUTEX_INITIALIZER,
           .contending = PTHREAD_MUTEX_INITIALIZER,
           .descriptor = -1,
           .slot = -1};

/* ---- The pages ---- */

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool guard_parse_uuid(const char* text, unsigned char uuid[16]) {
  if (strncmp(text, "GPU-", 4) != 0 && strncmp(text, "MIG-", 4) != 0) return false;
  text += 4;
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10)
      if (*text++ != '-') return false;
    const int high = hex_digit(text[0]);
    const int low = high < 0 ? -1 : hex_digit(text[1]);
    if (low < 0) return false;
    uuid[i] = (unsigned char)(high << 4 | low);
    text += 2;
  }
  return *text == '\0';
}

/* Null when there is no such file of that size. The descriptor stays open: see pages.descriptor. */
static void* map_page(const char* path, bool writable, size_t size, int* descriptor) {
  *descriptor = open(path, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (*descriptor < 0 || lseek(*descriptor, 0, SEEK_END) < (off_t)size) return NULL;
  void* page = mmap(NULL, size, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, *descriptor, 0);
  return page == MAP_FAILED ? NULL : page;
}

static bool understand_limits(void) {
  const struct guard_limits* limits = pages.limits;
  if (limits->magic != GUARD_LIMITS_MAGIC || limits->version != GUARD_LIMITS_VERSION) return false;
  const uint32_t count = limits->count;
  if (count > GUARD_GPUS) return false;
  for (uint32_t i = 0; i < count; ++i) {
    if (memchr(limits->gpus[i].uuid, '\0', sizeof limits->gpus[i].uuid) == NULL) return false;
    if (!guard_parse_uuid(limits->gpus[i].uuid, pages.uuids[i])) return false;
  }
  pages.count = (int)count;
  return true;
}

static void forget_slot(void) {
  pages.slot = -1;
  pthread_mutex_init(&pages.mutex, NULL);
  pthread_mutex_init(&pages.contending, NULL);
}

/* What NVIDIA's container toolkit reads of a container, in MiB. It makes a share smaller, and never larger.
 */
static uint64_t wish_of_environment(void) {
  const char* text = secure_getenv("NVIDIA_GPU_MEMORY_LIMIT");
  if (text == NULL || *text < '1' || *text > '9') return UINT64_MAX;
  char* end;
  const unsigned long long mib = strtoull(text, &end, 10);
  return *end == '\0' && mib < UINT64_MAX >> 20 ? mib << 20 : UINT64_MAX;
}

static bool is_absent(const char* path) {
  return access(path, F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

static enum guard_state open_pages(void) {
  const char *limits = GUARD_LIMITS_PATH, *account = GUARD_ACCOUNT_PATH;
  if (is_absent(limits)) {
    limits = GUARD_HOST_LIMITS_PATH;
    account = GUARD_HOST_ACCOUNT_PATH;
  }
  if (is_absent(limits)) {
    limits = secure_getenv("DROVER_GUARD_LIMITS");
    account = secure_getenv("DROVER_GUARD_ACCOUNT");
    if (limits == NULL || (access(limits, F_OK) != 0 && errno == ENOENT)) return GUARD_UNLIMITED;
  }
  int ignored;
  pages.limits = map_page(limits, false, sizeof *pages.limits, &ignored);
  if (pages.limits == NULL || !understand_limits()) return GUARD_BROKEN;
  if (pages.count == 0) return GUARD_UNLIMITED;
  if (account == NULL) return GUARD_BROKEN;
  pages.account = map_page(account, true, sizeof *pages.account, &pages.descriptor);
  if (pages.account == NULL) return GUARD_BROKEN;
  pages.own_limit = wish_of_environment();
  if (pthread_atfork(NULL, NULL, forget_slot) != 0) return GUARD_BROKEN;
  return GUARD_LIMITED;
}

enum guard_state guard_open(void) {
  int state = __atomic_load_n(&pages.state, __ATOMIC_ACQUIRE);
  if (state != GUARD_UNKNOWN) return (enum guard_state)state;
  pthread_mutex_lock(&pages.mutex);
  state = pages.state;
  if (state == GUARD_UNKNOWN) {
    state = open_pages();
    __atomic_store_n(&pages.state, state, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&pages.mutex);
  return (enum guard_state)state;
}

int guard_entry(const unsigned char uuid[16]) {
  const enum guard_state state = guard_open();
  if (state == GUARD_BROKEN) return 0;
  for (int i = 0; state == GUARD_LIMITED && i < pages.count; ++i)
    if (memcmp(pages.uuids[i], uuid, 16) == 0) return i;
  return -1;
}

const char* guard_uuid(int entry) {
  return pages.state == GUARD_LIMITED ? pages.limits->gpus[entry].uuid : "";
}

uint64_t guard_limit_bytes(int entry) {
  if (pages.state != GUARD_LIMITED) return 0;
  const uint64_t bytes = __atomic_load_n(&pages.limits->gpus[entry].bytes, __ATOMIC_RELAXED);
  return bytes < pages.own_limit ? bytes : pages.own_limit;
}

/* ---- Slots ---- */

static struct flock slot_lock(int slot) {
  return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = slot, .l_len = 1};
}

/* When the process ends, the GPU's own descriptors are then closed first, and the slot counts until then. */
static void move_descriptor_up(void) {
  if (pages.descriptor >= HIGH_DESCRIPTOR) return;
  const int low = pages.descriptor, high = fcntl(low, F_DUPFD_CLOEXEC, HIGH_DESCRIPTOR);
  if (high < 0) return;
  pages.descriptor = high;
  close(low); /* the process has no slot yet */
}

/* -1 when all are taken. */
static int take_slot(void) {
  move_descriptor_up();
  for (int i = 0; i < GUARD_SLOTS; ++i) {
    struct flock lock = slot_lock(i);
    if (fcntl(pages.descriptor, F_SETLK, &lock) != 0) continue;
    struct guard_slot* slot = &pages.account->slots[i];
    for (int gpu = 0; gpu < GUARD_GPUS; ++gpu) __atomic_store_n(&slot->held[gpu], 0, __ATOMIC_SEQ_CST);
    for (int gpu = 0; gpu < GUARD_GPUS; ++gpu)
      __atomic_store_n(&slot->uses[gpu].in_flight, 0, __ATOMIC_RELAXED); /* the rest only grows */
    slot->host_pid = 0;
    slot->pid = (uint32_t)getpid();
    uint32_t used = __atomic_load_n(&pages.account->slots_used, __ATOMIC_RELAXED);
    while (used < (uint32_t)i + 1 &&
           !__atomic_compare_exchange_n(&pages.account->slots_used, &used, (uint32_t)i + 1, false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
      continue;
    return i;
  }
  return -1;
}

static struct guard_slot* own_slot(void) {
  int slot = __atomic_load_n(&pages.slot, __ATOMIC_ACQUIRE);
  if (slot < 0) {
    if (guard_open() != GUARD_LIMITED) return NULL;
    pthread_mutex_lock(&pages.mutex);
    if (pages.slot < 0) __atomic_store_n(&pages.slot, take_slot(), __ATOMIC_RELEASE);
    slot = pages.slot;
    pthread_mutex_unlock(&pages.mutex);
    if (slot < 0) return NULL;
  }
  return &pages.account->slots[slot];
}

bool guard_keep_slot(void) {
  pthread_mutex_lock(&pages.mutex);
  struct flock lock = slot_lock(pages.slot);
  if (fcntl(pages.descriptor, F_SETLK, &lock) != 0)
    __atomic_store_n(&pages.slot, take_slot(), __ATOMIC_RELEASE);
  const bool kept = pages.slot >= 0;
  pthread_mutex_unlock(&pages.mutex);
  return kept;
}

static bool is_owned(int i) {
  if (i == pages.slot) return true;
  /* The lock may be that of the other library in this process, which no question can show. */
  if (pages.slot < 0 && pages.account->slots[i].pid == (uint32_t)getpid()) return true;
  struct flock lock = slot_lock(i);
  return fcntl(pages.descriptor, F_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

static int slots_used(void) {
  const uint32_t used = __atomic_load_n(&pages.account->slots_used, __ATOMIC_SEQ_CST);
  return used < GUARD_SLOTS ? (int)used : GUARD_SLOTS;
}

static uint64_t word(int slot, int entry) {
  return __atomic_load_n(&pages.account->slots[slot].held[entry], __ATOMIC_SEQ_CST);
}

/* ---- Sums ---- */

struct sums {
  uint64_t held;
  uint64_t certain;        /* of these */
  bool lower_is_uncertain; /* a process of a lower slot asks for some just now */
};

/* Of the slots that are owned, as they were at one moment if they stand still that long. */
static struct sums sum_up(int entry) {
  uint64_t words[GUARD_SLOTS];
  const int count = slots_used();
  for (int i = 0; i < count; ++i) words[i] = word(i, entry);
  for (int tries = 0; tries < 16; ++tries) {
    bool changed = false;
    for (int i = 0; i < count; ++i) {
      const uint64_t now = word(i, entry);
      changed |= now != words[i];
      words[i] = now;
    }
    if (!changed) break;
  }
  struct sums sums = {0};
  for (int i = 0; i < count; ++i) {
    if (words[i] == 0 || !is_owned(i)) continue;
    const uint64_t held = words[i] >> 32, uncertain = words[i] & UINT32_MAX;
    sums.held += held;
    sums.certain += held > uncertain ? held - uncertain : 0;
    sums.lower_is_uncertain |= i < pages.slot && uncertain > 0;
  }
  return sums;
}

uint64_t guard_used_bytes(int entry) {
  if (guard_open() != GUARD_LIMITED) return 0;
  const uint64_t used = sum_up(entry).certain * GUARD_UNIT, limit = guard_limit_bytes(entry);
  return used < limit ? used : limit;
}

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static bool is_stopped(uint32_t pid) {
  char path[32], text[256];
  snprintf(path, sizeof path, "/proc/%u/stat", pid);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  const ssize_t size = file < 0 ? -1 : read(file, text, sizeof text - 1);
  if (file >= 0) close(file);
  text[size > 0 ? size : 0] = '\0';
  const char* const end = strrchr(text, ')'); /* of the name; a blank and the state follow */
  return end == NULL || end[1] != ' ' || end[2] == 'T' || end[2] == 't';
}

/* On a busy machine a process that asks may not run for long; one that is stopped may never decide. */
static bool all_will_decide(int entry) {
  for (int i = 0, count = slots_used(); i < count; ++i)
    if (i != pages.slot && (word(i, entry) & UINT32_MAX) != 0 && is_owned(i) &&
        is_stopped(pages.account->slots[i].pid))
      return false;
  return true;
}

/* The first try failed. What others ask for at the moment may come to nothing, so who fits beside what is
 * certain tries again, the lowest slot first. */
static bool contend(uint64_t* mine, int entry, uint64_t units, uint64_t limit) {
  uint64_t deadline = now_ns() + PATIENCE_NS;
  bool asking = false;
  int patience = LONGEST_PATIENCE;
  for (int tries = 0;; ++tries) {
    struct sums sums = sum_up(entry);
    if (!asking && sums.certain + units <= limit && !sums.lower_is_uncertain) {
      __atomic_fetch_add(mine, UNCERTAIN(units), __ATOMIC_SEQ_CST);
      asking = true;
      sums = sum_up(entry);
    }
    if (asking && sums.held <= limit) {
      __atomic_fetch_sub(mine, units, __ATOMIC_SEQ_CST);
      return true;
    }
    if (now_ns() > deadline && --patience > 0 && all_will_decide(entry)) deadline += PATIENCE_NS;
    const bool refused = sums.certain + units > limit || now_ns() > deadline;
    if (asking && (refused || sums.lower_is_uncertain)) {
      __atomic_fetch_sub(mine, UNCERTAIN(units), __ATOMIC_SEQ_CST);
      asking = false;
    }
    if (refused) return false;
    /* Who has not decided may need this processor for it. */
    const struct timespec moment = {.tv_nsec = MOMENT_NS};
    if (tries < QUICK_TRIES)
      sched_yield();
    else
      nanosleep(&moment, NULL);
  }
}

bool guard_take(int entry, uint64_t units) {
  struct guard_slot* slot = own_slot();
  const uint64_t limit = guard_limit_bytes(entry) / GUARD_UNIT;
  if (slot == NULL || units > MOST_UNITS || units > limit) return false;
  uint64_t* mine = &slot->held[entry];
  __atomic_fetch_add(mine, UNCERTAIN(units), __ATOMIC_SEQ_CST);
  uint64_t sum = 0;
  for (int i = 0, count = slots_used(); i < count; ++i) sum += word(i, entry) >> 32;
  const bool fits = sum <= limit;
  __atomic_fetch_sub(mine, fits ? units : UNCERTAIN(units), __ATOMIC_SEQ_CST);
  if (fits) return true;
  pthread_mutex_lock(&pages.contending);
  const bool taken = contend(mine, entry, units, limit);
  pthread_mutex_unlock(&pages.contending);
  return taken;
}

void guard_add(int entry, uint64_t units) {
  struct guard_slot* slot = own_slot();
  if (slot == NULL) return;
  if (units > MOST_UNITS) units = MOST_UNITS;
  __atomic_fetch_add(&slot->held[entry], units << 32, __ATOMIC_SEQ_CST);
}

void guard_give(int entry, uint64_t units) {
  struct guard_slot* slot = own_slot();
  if (slot == NULL) return;
  uint64_t before = __atomic_load_n(&slot->held[entry], __ATOMIC_SEQ_CST), after;
  do {
    const uint64_t held = before >> 32;
    after = (held > units ? held - units : 0) << 32 | (before & UINT32_MAX);
  } while (!__atomic_compare_exchange_n(&slot->held[entry], &before, after, false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_SEQ_CST));
}

void guard_set_held(int entry, uint64_t units) {
  struct guard_slot* slot = own_slot();
  if (slot == NULL || !guard_keep_slot()) return;
  slot = own_slot();
  __atomic_store_n(&slot->held[entry], (units < MOST_UNITS ? units : MOST_UNITS) << 32, __ATOMIC_SEQ_CST);
}

void guard_count_refusal(int entry) {
  if (guard_open() == GUARD_LIMITED) __atomic_fetch_add(&pages.account->refused[entry], 1, __ATOMIC_RELAXED);
}

/* ---- Time ---- */

const struct guard_turn* guard_turn_of(int entry) {
  if (guard_open() != GUARD_LIMITED) return NULL;
  const struct guard_turn* turn = &pages.limits->turns[entry];
  return __atomic_load_n(&turn->milli, __ATOMIC_RELAXED) != 0 ? turn : NULL;
}

struct guard_use* guard_use_of(int entry) {
  struct guard_slot* slot = own_slot();
  return slot == NULL ? NULL : &slot->uses[entry];
}

/* ---- Who is who ---- */

struct guard_pids guard_own_pids(void) {
  const struct guard_slot* slot = own_slot();
  return (struct guard_pids){slot == NULL ? 0 : __atomic_load_n(&slot->host_pid, __ATOMIC_RELAXED),
                             (uint32_t)getpid()};
}

static struct guard_pids find_pids(uint32_t pid, bool of_host) {
  if (pid == 0 || guard_open() != GUARD_LIMITED) return (struct guard_pids){0, 0};
  for (int i = 0, count = slots_used(); i < count; ++i) {
    const struct guard_slot* slot = &pages.account->slots[i];
    const struct guard_pids pids = {__atomic_load_n(&slot->host_pid, __ATOMIC_RELAXED), slot->pid};
    if (pid == (of_host ? pids.host : pids.own) && is_owned(i)) return pids;
  }
  return (struct guard_pids){0, 0};
}

struct guard_pids guard_find_pids(uint32_t told_by_driver) {
  const struct guard_pids pids = find_pids(told_by_driver, true);
  return pids.own != 0 ? pids : find_pids(told_by_driver, false);
}

struct guard_pids guard_pids_of(uint32_t own_pid) {
  return find_pids(own_pid, false);
}

uint64_t guard_context_units(int entry) {
  if (guard_open() != GUARD_LIMITED) return 0;
  const uint64_t units = __atomic_load_n(&pages.account->context[entry], __ATOMIC_RELAXED);
  return units <= MOST_CONTEXT_UNITS ? units : 0;
}

void guard_set_context_units(int entry, uint64_t units) {
  if (guard_open() != GUARD_LIMITED) return;
  __atomic_store_n(&pages.account->context[entry], units, __ATOMIC_RELAXED);
}

/* The layout of the two pages of a container with a share of GPUs: a contract between the guard's libraries,
 * which map them, and whoever makes them and looks at them from outside. C11, and C++.
 *
 * Times are in nanoseconds on CLOCK_MONOTONIC. What the account says is written by the container's processes,
 * and may be anything. */
#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

enum {
  GUARD_LIMITS_MAGIC = 0x44564C4D,
  GUARD_LIMITS_VERSION = 2,
  GUARD_GPUS = 16,
  GUARD_SLOTS = 64,
  GUARD_UNIT = 1 << 16, /* bytes: what memory is counted in */
};

/* Where a container finds them. DROVER_GUARD_LIMITS and DROVER_GUARD_ACCOUNT name others, but only where
 * there is no page of limits in its place: who is limited cannot be let off by his environment. */
#define GUARD_LIMITS_PATH "/usr/local/nvidia/share/limits"
#define GUARD_ACCOUNT_PATH "/usr/local/nvidia/share/account"
/* Where a container has the machine's own files, in which nothing can be made. */
#define GUARD_HOST_LIMITS_PATH "/run/drover-guard/limits"
#define GUARD_HOST_ACCOUNT_PATH "/run/drover-guard/account"

struct guard_limit {
  char uuid[56];  /* as NVML spells it: GPU-… or MIG-…, closed by a NUL */
  uint64_t bytes; /* may change at any time */
};

/* Launches are admitted until then, and for ever while nobody else wants the GPU. */
#define GUARD_NOBODY_ELSE UINT64_MAX
/* Whoever decides has gone when he has not said that he is there for so long: then nobody waits for a turn.
 */
#define GUARD_BEAT_NS UINT64_C(1000000000)

struct guard_turn {
  uint64_t until_ns; /* both change all the time, and are next to each other */
  uint64_t beat_ns;  /* when whoever decides was last there */
  uint32_t milli;    /* the share of the GPU's time in thousandths; 0: it is not limited, and stays so */
  uint32_t unused[11];
};

struct guard_limits {
  uint32_t magic;
  uint32_t version;
  uint64_t generation; /* counts the changes of memory */
  uint32_t count;      /* of the entries */
  uint32_t unused[11];
  struct guard_limit gpus[GUARD_GPUS]; /* entry i is what the account's figures i are about */
  struct guard_turn turns[GUARD_GPUS]; /* and turn i */
};

/* Of one process on one GPU whose time is limited. */
struct guard_use {
  uint64_t busy_ns;    /* of work that was measured: what has a turn, and some of the rest */
  uint64_t asked;      /* grows while the process launches, or waits to */
  uint64_t longest_ns; /* of one kernel or graph */
  uint32_t in_flight;  /* launches that are not known to have ended */
  uint32_t unused;
};

struct guard_slot {
  uint32_t pid;      /* as the process knows itself */
  uint32_t host_pid; /* as the host numbers it, where somebody there wrote that; else 0 */
  uint64_t unused[7];
  uint64_t held[GUARD_GPUS]; /* upper half: units held; lower half: how many of these are not certain yet */
  struct guard_use uses[GUARD_GPUS];
};

struct guard_account {
  uint64_t context[GUARD_GPUS]; /* units that a context took when one was last measured */
  uint32_t slots_used;          /* no slot from this one on was ever owned */
  uint32_t unused[15];
  struct guard_slot slots[GUARD_SLOTS];
  uint64_t refused[GUARD_GPUS]; /* how often memory was, whichever process asked: only grows */
};

static_assert(sizeof(struct guard_turn) == 64, "turn");
static_assert(sizeof(struct guard_use) == 32, "use");
static_assert(sizeof(struct guard_limits) == 64 + 128 * GUARD_GPUS, "limits");
static_assert(sizeof(struct guard_account) == 64 + 16 * GUARD_GPUS + (64 + 40 * GUARD_GPUS) * GUARD_SLOTS,
              "account");

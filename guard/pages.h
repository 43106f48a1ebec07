/* The two pages of a container whose memory on GPUs is limited, and how its processes share the limits.
 *
 * The page of limits is the administrator's; processes of the container only read it. The account is theirs:
 * a slot for each process that uses a limited GPU, with how much memory of each GPU it holds. A process owns
 * slot i while it has a POSIX record lock on byte i of the file. The kernel frees that when the process ends,
 * however it does, and what the slot says then counts as nothing. No total is stored, and nobody waits for a
 * lock that another process has: one that is stopped or killed at any instruction holds up others for some
 * milliseconds.
 *
 * Whoever may open the account can write anything into it, and so fool the processes of his container alone.
 *
 * Plain C11, so that the libraries need nothing but a C library. Thread safe. After fork() the child owns no
 * slot and takes its own when it first asks for memory. */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  GUARD_LIMITS_MAGIC = 0x44564C4D,
  GUARD_LIMITS_VERSION = 1,
  GUARD_GPUS = 16,
  GUARD_SLOTS = 64,
  GUARD_UNIT = 1 << 16, /* bytes: what memory is counted in */
};

/* Where a container finds them. DROVER_GUARD_LIMITS and DROVER_GUARD_ACCOUNT name others, but only where
 * there is no page of limits in its place: who is limited cannot be let off by his environment. */
#define GUARD_LIMITS_PATH "/usr/local/nvidia/share/limits"
#define GUARD_ACCOUNT_PATH "/usr/local/nvidia/share/account"

struct guard_limit {
  char uuid[56];  /* as NVML spells it: GPU-… or MIG-…, closed by a NUL */
  uint64_t bytes; /* may change at any time */
};

struct guard_limits {
  uint32_t magic;
  uint32_t version;
  uint64_t generation; /* counts the changes */
  uint32_t count;      /* of the entries */
  uint32_t unused[11];
  struct guard_limit gpus[GUARD_GPUS]; /* entry i is what the account's figures i are about */
};

struct guard_slot {
  uint32_t pid;      /* as the process knows itself */
  uint32_t host_pid; /* as the host numbers it, where somebody there wrote that; else 0 */
  uint64_t unused[7];
  uint64_t held[GUARD_GPUS]; /* upper half: units held; lower half: how many of these are not certain yet */
};

struct guard_account {
  uint64_t context[GUARD_GPUS]; /* units that a context took when one was last measured */
  uint32_t slots_used;          /* no slot from this one on was ever owned */
  uint32_t unused[15];
  struct guard_slot slots[GUARD_SLOTS];
};

/* The layout is a contract with whoever makes the pages. */
static_assert(sizeof(struct guard_limits) == 64 + 64 * GUARD_GPUS, "limits");
static_assert(sizeof(struct guard_account) == 64 + 8 * GUARD_GPUS + (64 + 8 * GUARD_GPUS) * GUARD_SLOTS,
              "account");

/* How a process stands to its pages: unlimited without a page of limits; refused all memory of every GPU when
 * that page is there and cannot be understood, or a limit has no account to be held to. */
enum guard_state { GUARD_UNKNOWN, GUARD_UNLIMITED, GUARD_LIMITED, GUARD_BROKEN };

/* Opens the pages at the first call. */
enum guard_state guard_open(void);

/* The entry of a GPU, or -1 when it is not limited. 0 for each while the state is GUARD_BROKEN. */
int guard_entry(const unsigned char uuid[16]);

/* What `text` says, such as "GPU-8f0b…"; false if it is no UUID. */
bool guard_parse_uuid(const char* text, unsigned char uuid[16]);

/* As the page spells it; empty while the state is GUARD_BROKEN. */
const char* guard_uuid(int entry);

uint64_t guard_limit_bytes(int entry);

/* What all processes of the container hold, and never more than the limit. */
uint64_t guard_used_bytes(int entry);

/* Takes so many units unless the container would then hold more than its limit. Of several that race near it,
 * one that fits is not refused because of another that does not. */
bool guard_take(int entry, uint64_t units);

/* Takes them whatever the limit is: the driver has given them already. */
void guard_add(int entry, uint64_t units);
void guard_give(int entry, uint64_t units);

/* Says what this process holds. Nobody else in the process may take or give meanwhile. */
void guard_set_held(int entry, uint64_t units);

/* The numbers of a process, of which the driver uses one: older ones number processes as the host does, newer
 * ones as the process does that asks. */
struct guard_pids {
  uint32_t host; /* 0: not known */
  uint32_t own;
};

/* Of this process. */
struct guard_pids guard_own_pids(void);

/* Of a live process of the container that has a slot: by whichever of its numbers that is, the host's first;
 * or by its own. Zeros when there is none such. */
struct guard_pids guard_find_pids(uint32_t told_by_driver);
struct guard_pids guard_pids_of(uint32_t own_pid);

/* A guess for a new context's units, from those that this container has made. */
uint64_t guard_context_units(int entry);
void guard_set_context_units(int entry, uint64_t units);

static inline uint64_t guard_units(uint64_t bytes) {
  return bytes / GUARD_UNIT + (bytes % GUARD_UNIT != 0);
}

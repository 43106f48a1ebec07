/* The two pages of a container whose share of GPUs is limited (guard/layout.h), and how its processes share
 * the limits.
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

#include <stdbool.h>
#include <stdint.h>

#include "guard/layout.h"

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

/* One more request was refused: that stays counted when the process ends, and its slot is somebody else's. */
void guard_count_refusal(int entry);

/* Whose turn it is on a GPU; null where nobody limits time. */
const struct guard_turn* guard_turn_of(int entry);

/* What this process tells of its work on a GPU; null when it has no slot. */
struct guard_use* guard_use_of(int entry);

/* A program that closes descriptors that it did not open may have given its slot up: takes it again, or
 * another one. False when there is none. */
bool guard_keep_slot(void);

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

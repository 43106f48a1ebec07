/* How calls that give memory, or take it back, are counted. What the slot of a process says it holds is never
 * less than what the card really gave it:
 *
 *   - Memory of 2 MiB and more counts with its size, rounded up to that. Smaller memory shares blocks of 2
 * MiB, so each counts as a block, and its end takes nothing away.
 *   - What a call takes that nobody asked for (contexts, code, heaps) counts with what the driver's own
 * figure for the process grows by.
 *   - What was counted and may no longer be held is measured before the next refusal: nobody allocates
 * meanwhile, and the slot gets the driver's figure.
 *
 * A call of the driver's library that comes from a call of ours is not counted: `entry` is -1 then, as it is
 * for a GPU that is not limited. Thread safe. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "guard/driver.h"
#include "guard/table.h"

/* The entry of the limits that counts for a device, or for the current context; -1 when none does. */
int limited_device(CUdevice device);
int limited_here(void);
/* The driver calls itself, and is not to be counted twice. */
bool is_nested(void);
int limited_entry(CUdevice device); /* the same, in a call of ours too */

/* Whether a call that ends something may be one of the program's, in a container with limits. */
bool is_counted(void);

/* CUDA_ERROR_OUT_OF_MEMORY, with which a call ends that the limit of this entry forbids. It is counted. */
CUresult refuse(int entry);

/* Memory of a known size. Nobody measures from the beginning until it is kept or dropped. */
struct charge {
  int entry;
  uint32_t units;
  uint8_t weight;
};

/* Takes it unless the limit forbids it; false: refuse(), and that was all. */
bool charge_begin(struct charge* charge, int entry, uint64_t bytes, enum weight weight);
/* The driver gave so much after all; false when that is too much: take it back and drop the charge. */
bool charge_settle(struct charge* charge, uint64_t bytes);
void charge_keep(const struct charge* charge, enum kind kind, uint64_t key, void* object);
void charge_drop(const struct charge* charge);

/* The end of something that was kept. */
struct release {
  struct thing thing;
  uint64_t measurements;
  bool found;   /* false when nothing is known of it */
  bool certain; /* the driver has it back when the call returns */
};
void release_begin(struct release* release, enum kind kind, uint64_t key);
void release_end(const struct release* release, CUresult result);

/* What the slot says already counts from now on. While nobody measures. */
void count(int entry, uint32_t units, enum weight weight);

/* It counts no longer; the slot only says so when that is certain. While nobody measures. */
void uncount(int entry, uint32_t units, enum weight weight, bool certain);

/* A call that takes what is not known before. Nobody else in the process allocates from the beginning to the
 * end. `least` bytes are taken first. */
struct implied {
  int entry;
  uint32_t least; /* units */
  uint32_t grown; /* units, after the end */
  uint64_t own_before;
  uint64_t gpu_before;
  bool gpu_known;
};
bool implied_begin(struct implied* implied, int entry, uint64_t least);
/* False when it is too much: undo the call, then implied_undone(). Otherwise it is kept as `kind` and `key`
 * unless that is KIND_NONE. */
bool implied_end(struct implied* implied, CUresult result, enum kind kind, uint64_t key, uint64_t context);
void implied_undone(const struct implied* implied);

/* All that goes with a context has ended. Between exclusive_begin() and exclusive_end(), when nobody else in
 * the process allocates. */
void forget_context(uint64_t context);
void exclusive_begin(void);
void exclusive_end(void);

/* Nobody measures from the beginning to the end. */
void counting_begin(void);
void counting_end(void);

/* The process may hold less than its slot says. */
void set_loose(int entry);
void set_all_loose(void);

/* Measures if it may: for what is shown, and so that others can have what this process no longer holds. */
void tighten(int entry);
void tighten_all(void);

/* Gives back what pools do not use, and measures if the process may hold less than its slot says. */
void make_room(int entry);

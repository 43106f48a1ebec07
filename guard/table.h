/* What a process has from the driver that memory is counted for: one hash table for all kinds. Constant time,
 * however much is alive. Thread safe. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum kind {
  KIND_NONE,
  KIND_MEMORY,   /* by address */
  KIND_EXTERNAL, /* imported from another interface */
  KIND_HANDLE,   /* of physical memory */
  KIND_MAPPING,  /* of physical memory, by address */
  KIND_CONTEXT,
  KIND_PRIMARY, /* by device */
  KIND_MODULE,
  KIND_LIBRARY,
  KIND_ARRAY,
  KIND_GRAPH, /* that allocates when it is launched */
};

/* How its units count. */
enum weight {
  WEIGHT_EXACT,   /* the driver takes and gives back as much */
  WEIGHT_BLOCK,   /* a small one in a block that it may share */
  WEIGHT_BESIDE,  /* as exact, but the driver's figure for a process may leave it out */
  WEIGHT_IMPLIED, /* what the figure grew by */
};

struct thing {
  uint64_t key;
  uint64_t context; /* with which it goes; 0: with none */
  void* object;     /* of KIND_HANDLE and KIND_MAPPING */
  uint64_t bytes;   /* of KIND_MAPPING */
  uint32_t units;
  uint8_t kind;
  uint8_t weight;
  uint8_t entry;
  uint8_t unused;
};

/* Makes room, so that the next put of this thread succeeds; false when there is no memory. */
bool table_reserve(void);

/* Replaces what is there under the same kind and key. */
void table_put(const struct thing* thing);
bool table_get(enum kind kind, uint64_t key, struct thing* found);
bool table_take(enum kind kind, uint64_t key, struct thing* found);

/* Takes any one that goes with the context; false when there is none. */
bool table_take_of_context(uint64_t context, struct thing* found);

/* In a child after fork(): nothing of it is the child's. */
void table_forget(void);

/* Memory pools, and the pool of each GPU from which graphs allocate: each is charged what the driver has
 * reserved for it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Units that the pools of a GPU have now; gives back what they do not use first, when told to. Nobody may
 * allocate meanwhile. */
uint64_t pools_units(int entry, bool trim);

/* In a child after fork(). */
void pools_forget(void);

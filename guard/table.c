#define _GNU_SOURCE
#include "guard/table.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { SMALLEST = 1024, MOST_THREADS = 512 };

static struct {
  pthread_mutex_t mutex;
  struct thing* things; /* open addressing; kind 0 is a free place */
  uint64_t places;      /* a power of two */
  uint64_t count;
} table = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static uint64_t home(uint64_t kind, uint64_t key) {
  const uint64_t mixed = (key ^ kind << 56) * UINT64_C(0x9E3779B97F4A7C15);
  return (mixed ^ mixed >> 32) & (table.places - 1);
}

/* Its place, or the free one where it would go. */
static uint64_t find(uint64_t kind, uint64_t key) {
  uint64_t place = home(kind, key);
  while (table.things[place].kind != KIND_NONE &&
         (table.things[place].kind != kind || table.things[place].key != key))
    place = (place + 1) & (table.places - 1);
  return place;
}

/* Closes the gap, so that no search ends early. */
static void remove_at(uint64_t gap) {
  const uint64_t mask = table.places - 1;
  for (uint64_t place = (gap + 1) & mask; table.things[place].kind != KIND_NONE; place = (place + 1) & mask) {
    const uint64_t wanted = home(table.things[place].kind, table.things[place].key);
    if (((place - wanted) & mask) < ((place - gap) & mask)) continue;
    table.things[gap] = table.things[place];
    gap = place;
  }
  table.things[gap].kind = KIND_NONE;
  --table.count;
}

static bool grow(void) {
  struct thing* const old = table.things;
  const uint64_t old_places = table.places, places = old_places ? 2 * old_places : 2 * SMALLEST;
  struct thing* const things = calloc(places, sizeof *things);
  if (things == NULL) return false;
  table.things = things;
  table.places = places;
  for (uint64_t i = 0; i < old_places; ++i)
    if (old[i].kind != KIND_NONE) things[find(old[i].kind, old[i].key)] = old[i];
  free(old);
  return true;
}

bool table_reserve(void) {
  pthread_mutex_lock(&table.mutex);
  const bool enough = 2 * (table.count + MOST_THREADS) <= table.places || grow();
  pthread_mutex_unlock(&table.mutex);
  return enough;
}

void table_put(const struct thing* thing) {
  pthread_mutex_lock(&table.mutex);
  const uint64_t place = find(thing->kind, thing->key);
  table.count += table.things[place].kind == KIND_NONE;
  table.things[place] = *thing;
  pthread_mutex_unlock(&table.mutex);
}

static bool look(enum kind kind, uint64_t key, struct thing* found, bool take) {
  pthread_mutex_lock(&table.mutex);
  const uint64_t place = table.count ? find(kind, key) : 0;
  const bool there = table.count && table.things[place].kind != KIND_NONE;
  if (there) *found = table.things[place];
  if (there && take) remove_at(place);
  pthread_mutex_unlock(&table.mutex);
  return there;
}

bool table_get(enum kind kind, uint64_t key, struct thing* found) {
  return look(kind, key, found, false);
}

bool table_take(enum kind kind, uint64_t key, struct thing* found) {
  return look(kind, key, found, true);
}

bool table_take_of_context(uint64_t context, struct thing* found) {
  bool there = false;
  pthread_mutex_lock(&table.mutex);
  for (uint64_t i = 0; !there && i < table.places; ++i) {
    there = table.things[i].kind != KIND_NONE && table.things[i].context == context;
    if (!there) continue;
    *found = table.things[i];
    remove_at(i);
  }
  pthread_mutex_unlock(&table.mutex);
  return there;
}

void table_forget(void) {
  pthread_mutex_init(&table.mutex, NULL);
  if (table.things != NULL) memset(table.things, 0, table.places * sizeof *table.things);
  table.count = 0;
}

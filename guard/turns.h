/* Launches wait for the container's turn where time of a GPU is limited. Whose turn it is stands in the page
 * of limits (guard/layout.h); how much is in flight, and how long it took by events of the driver, is told in
 * the process's slot.
 *
 *   - In its turn a container has work of some 2 ms in flight, so that its turn ends about when it should.
 *   - While nobody else wants the GPU, launches go on; now and then one is measured, so that somebody who
 *     comes finds at most 50 ms of work before his.
 *   - What has run for longer than 150 ms is waited for by nothing: it may itself wait for a later launch.
 *   - Launches into a stream that is captured run nothing, and are let alone.
 *
 * Thread safe. A child after fork() knows of no work. */
#pragma once

#include <stdbool.h>

#include "guard/driver.h"

struct launch {
  int entry; /* of the limits; -1: it is not measured */
  int place;
  CUstream stream;
  bool per_thread;
};

enum turns { TURNS_NONE, TURNS_UNKNOWN, TURNS_LIMITED };
/* TURNS_NONE: this process never waits. Decided at the first launch. */
extern int turns_limited;

/* `what` is launched: a function or a graph, by whose earlier launches it is known how long it may take. */
void launch_begin(struct launch* launch, CUstream stream, bool per_thread, const void* what);
void launch_end(const struct launch* launch, CUresult result);

/* The body of a function that launches by `call`. */
#define IN_TURN(call, stream, per_thread, what)                                             \
  struct launch launch;                                                                     \
  if (__builtin_expect(!__atomic_load_n(&turns_limited, __ATOMIC_RELAXED), 1)) return call; \
  launch_begin(&launch, stream, per_thread, what);                                          \
  const CUresult result = call;                                                             \
  launch_end(&launch, result);                                                              \
  return result

/* Between the two nobody asks the driver of a context that is about to end. */
void turns_stop(void);
void turns_go_on(void);
/* What was in flight there has ended with it; null: with some context. While stopped. */
void turns_forget(CUcontext context);

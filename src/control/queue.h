#pragma once

// First come, first served: a task that waits holds its place. A later one may pass only if it takes nothing
// that those ahead wait for: no GPU while one of them wants GPUs, and no CPU or memory that they will need.
// So a CPU-only task need not wait behind an 8-GPU job, and the 8-GPU job is never overtaken for ever. Pure.

#include <variant>

#include "control/record.h"
#include "placement/whole.h"

namespace drover::control {

inline placement::whole::Request request_of(const workload::Task& task) {
  return {task.resources.gpu_count(), task.resources.milli_cpus, task.resources.memory_bytes};
}

inline void add_usage(placement::whole::Usage& usage, const TaskRecord& record) {
  for (const auto& grant : record.gpus) usage.gpus.insert(grant.uuid);
  usage.milli_cpus += record.task.resources.milli_cpus;
  usage.memory_bytes += record.task.resources.memory_bytes;
}

/// What the tasks ahead in the queue wait for.
struct Reservation {
  int tasks = 0;
  int tasks_with_gpus = 0;
  std::int64_t milli_cpus = 0;
  std::uint64_t memory_bytes = 0;

  void add(const placement::whole::Request& request) {
    ++tasks;
    if (request.gpus > 0) ++tasks_with_gpus;
    milli_cpus += request.milli_cpus;
    memory_bytes += request.memory_bytes;
  }
};

/// Whether those ahead want GPUs too, so that this one waits whatever is free.
inline bool must_wait(const Reservation& ahead, const placement::whole::Request& request) {
  return request.gpus > 0 && ahead.tasks_with_gpus > 0;
}

/// placement::whole::place for a task that stands behind `ahead` in the queue.
std::variant<placement::whole::Decision, placement::whole::Reasons> place_behind(
    const placement::whole::Node& node, const placement::whole::Usage& usage, const Reservation& ahead,
    const placement::whole::Request& request);

}  // namespace drover::control

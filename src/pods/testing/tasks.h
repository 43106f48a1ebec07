#pragma once

// A task as tests of pods have it.

#include <string>

#include "workload/task.h"

namespace drover::pods::testing {

/// Of the user ann, with so many whole GPUs.
inline workload::Task task_of_ann(const std::string& id, int gpus) {
  workload::Task task;
  task.id = id;
  task.name = "train";
  task.image = "trainer:1";
  task.user = {1000, 1001, {}, "ann", "/home/ann"};
  task.owner = 1000;
  task.owner_name = "ann";
  task.resources = {.gpus = {{gpus, {}}}, .milli_cpus = 1500, .memory_bytes = 1ULL << 30};
  return task;
}

}  // namespace drover::pods::testing

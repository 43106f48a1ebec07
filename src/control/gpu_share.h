#pragma once

// What a task with GPUs gets that does not say how many CPUs or how much memory it needs: the part of the
// machine that goes with its GPUs, so that one for each GPU always fit beside each other. Pure.

#include <cstdint>
#include <optional>
#include <vector>

#include "placement/node.h"
#include "placement/queues.h"

namespace drover::control {

/// What goes with one whole GPU, where the administrator has said so; else its part of the machine.
struct GpuShare {
  std::optional<std::int64_t> milli_cpus;
  std::optional<std::uint64_t> memory_bytes;

  bool operator==(const GpuShare&) const = default;
};

/// What is not said of one task.
struct Unsaid {
  bool cpus = false;
  bool memory = false;
};

/// Fills in what is not said of the tasks of one job: a task, or the members of a gang by rank, complete but
/// for it. What they have there already is the least that they get, and all that those get who ask for no
/// GPUs of their own: none at all, or a group's. Rounded down to whole CPUs and GiB. A limit of the queue,
/// the user or the namespace counts as a smaller machine, so that as many tasks as its GPUs let in find CPUs
/// and memory in it; a gang is given no more than there is beside what its members say.
void give_gpu_shares(std::vector<workload::Task>& tasks, const std::vector<Unsaid>& unsaid,
                     const placement::Node& node, const placement::Rules& rules, const GpuShare& share);

}  // namespace drover::control

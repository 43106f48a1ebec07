#pragma once

// What each user has in the state: how many tasks wait, and how large the definitions are. Pure.

#include <sys/types.h>

#include <cstdint>
#include <map>

#include "control/record.h"
#include "workload/task_writer.h"

namespace drover::control {

/// Of tasks but the instances of services, which are counted with their service.
struct Usage {
  std::uint64_t waiting = 0;      ///< tasks
  std::uint64_t live = 0;         ///< those that wait, and those that run
  std::uint64_t ended = 0;        ///< those that have ended and are remembered
  std::uint64_t live_bytes = 0;   ///< of tasks that have not ended
  std::uint64_t ended_bytes = 0;  ///< of those that have

  Usage& operator+=(const Usage& other);
  Usage& operator-=(const Usage& other);
  bool operator==(const Usage&) const = default;
};

/// By owner; nobody who has nothing.
using Usages = std::map<uid_t, Usage>;

/// Of all of them together.
Usage sum(const Usages& usages);

/// Takes note that a task has become another; null: there was none, or there is none any more.
void count(Usages& usages, const TaskRecord* before, const TaskRecord* after,
           workload::DefinitionSizes& sizes);

/// What a task's record takes up besides its definition, about.
inline constexpr std::uint64_t kRecordBytes = 1024;

/// Bytes of a record with this definition, about.
std::uint64_t stored_bytes(const workload::Task& task);

}  // namespace drover::control

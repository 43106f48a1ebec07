#pragma once

// A task as text: stored in the journal and shown by the API. Lists and journals write thousands, so no tree
// of values is built first. Pure.

#include <array>
#include <vector>

#include "workload/task.h"

namespace drover {
class JsonWriter;
}

namespace drover::workload {

/// The only form in which a task is written; decode_task() reads it. Fields by name.
void write(JsonWriter& writer, const Task& task);

/// Its template alone (task.h); decode_template() reads it.
std::string template_text(const Task& task);

/// Bytes of the task as text: what limits on definitions count.
std::uint64_t definition_bytes(const Task& task);

/// The same for one task after another, which often share their template: each part of it is looked at once.
class DefinitionSizes {
 public:
  std::uint64_t of(const Task& task);

 private:
  Task last_;  ///< whose template was looked at last
  std::array<std::uint64_t, 5> part_bytes_{};
};

/// The kinds of GPUs as a list, as a request gives them.
void write_kinds(JsonWriter& writer, const std::vector<DeviceClaim>& kinds);

/// "gpu_share", when it is not all of each GPU, and "gpus": the number of them.
void write_gpu_count(JsonWriter& writer, const Resources& resources);

}  // namespace drover::workload

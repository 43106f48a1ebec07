#pragma once

// A task as text: stored in the journal and shown by the API. Lists and journals write thousands, so no tree
// of values is built first. Pure.

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

/// "gpu_share", when it is not all of each GPU, and "gpus": the number of them.
void write_gpu_count(JsonWriter& writer, const Resources& resources);

}  // namespace drover::workload

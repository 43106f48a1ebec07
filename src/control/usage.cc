#include "control/usage.h"

#include "workload/task_writer.h"

namespace drover::control {
namespace {

Usage usage_of(const TaskRecord& record) {
  const auto bytes = stored_bytes(record.task);
  if (is_final(record.state)) return {0, 0, bytes};
  return {record.state == TaskState::kQueued ? 1ULL : 0ULL, bytes, 0};
}

}  // namespace

std::uint64_t stored_bytes(const workload::Task& task) {
  return kRecordBytes + workload::definition_bytes(task);
}

void count(Usages& usages, const TaskRecord* before, const TaskRecord* after) {
  const auto& task = before != nullptr ? before->task : after->task;
  if (task.origin.kind == workload::OriginKind::kService) return;
  if (before != nullptr && after != nullptr && before->state == after->state) return;
  auto& usage = usages[task.owner];
  if (before != nullptr) {
    const auto was = usage_of(*before);
    usage.waiting -= was.waiting;
    usage.live_bytes -= was.live_bytes;
    usage.ended_bytes -= was.ended_bytes;
  }
  if (after != nullptr) {
    const auto is = usage_of(*after);
    usage.waiting += is.waiting;
    usage.live_bytes += is.live_bytes;
    usage.ended_bytes += is.ended_bytes;
  }
  if (usage == Usage{}) usages.erase(task.owner);
}

}  // namespace drover::control

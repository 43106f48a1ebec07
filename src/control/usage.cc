#include "control/usage.h"

namespace drover::control {
namespace {

Usage usage_of(const TaskRecord& record, workload::DefinitionSizes& sizes) {
  const auto bytes = kRecordBytes + sizes.of(record.task);
  if (is_final(record.state)) return {.ended = 1, .ended_bytes = bytes};
  return {.waiting = record.state == TaskState::kQueued ? 1ULL : 0ULL, .live = 1, .live_bytes = bytes};
}

constexpr std::uint64_t Usage::* kAmounts[] = {&Usage::waiting, &Usage::live, &Usage::ended,
                                               &Usage::live_bytes, &Usage::ended_bytes};

}  // namespace

Usage& Usage::operator+=(const Usage& other) {
  for (const auto amount : kAmounts) this->*amount += other.*amount;
  return *this;
}

Usage& Usage::operator-=(const Usage& other) {
  for (const auto amount : kAmounts) this->*amount -= other.*amount;
  return *this;
}

Usage sum(const Usages& usages) {
  Usage all;
  for (const auto& [owner, usage] : usages) all += usage;
  return all;
}

std::uint64_t stored_bytes(const workload::Task& task) {
  return kRecordBytes + workload::definition_bytes(task);
}

void count(Usages& usages, const TaskRecord* before, const TaskRecord* after,
           workload::DefinitionSizes& sizes) {
  const auto& task = before != nullptr ? before->task : after->task;
  if (task.origin.kind == workload::OriginKind::kService) return;
  // A share that was changed may take up more in writing, or less.
  if (before != nullptr && after != nullptr && before->state == after->state &&
      before->task.resources.share == after->task.resources.share)
    return;
  auto& usage = usages[task.owner];
  if (before != nullptr) usage -= usage_of(*before, sizes);
  if (after != nullptr) usage += usage_of(*after, sizes);
  if (usage == Usage{}) usages.erase(task.owner);
}

}  // namespace drover::control

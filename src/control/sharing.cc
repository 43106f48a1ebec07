#include "control/sharing.h"

namespace drover::control {
namespace {

template <typename Predicate>
placement::ResourceAmounts used(const State& state, Predicate is_meant) {
  std::vector<const workload::Task*> meant;
  for (const auto& id : state.active)
    if (const auto& task = state.tasks.at(id).task; is_meant(task)) meant.push_back(&task);
  return held_by(state.cluster, meant);
}

}  // namespace

bool is_in(const workload::Task& task, const std::string& queue) {
  return task.queue == queue || task.queue.starts_with(queue + "/");
}

bool is_of(const workload::Task& task, const placement::Subject& subject) {
  return subject.name == (subject.kind == placement::SubjectKind::kUser ? task.owner_name : task.name_space);
}

placement::ResourceAmounts held_by(const placement::Cluster& cluster,
                                   const std::vector<const workload::Task*>& tasks) {
  placement::Gang all;  // as if they were one: then what a group shares is seen to be the same
  for (const auto* task : tasks) all.members.push_back(request_of(*task));
  return placement::amounts_of(cluster, all);
}

placement::ResourceAmounts used_in(const State& state, const std::string& queue) {
  return used(state, [&](const workload::Task& task) { return is_in(task, queue); });
}

placement::ResourceAmounts used_by(const State& state, const placement::Subject& subject) {
  return used(state, [&](const workload::Task& task) { return is_of(task, subject); });
}

placement::ResourceAmounts wanted_by(const State& state, const TaskRecord& record) {
  placement::Gang gang;
  for (const auto* member : members_of(record.task, state.finder()))
    gang.members.push_back(request_of(member->task));
  return placement::amounts_of(state.cluster, gang);
}

}  // namespace drover::control

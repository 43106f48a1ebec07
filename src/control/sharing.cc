#include "control/sharing.h"

namespace drover::control {
namespace {

/// All that runs and is meant, as if it were one gang: then what a group shares is seen to be the same.
template <typename Predicate>
placement::Amounts used(const State& state, Predicate is_meant) {
  placement::Gang all;
  for (const auto& id : state.active)
    if (const auto& task = state.tasks.at(id).task; is_meant(task)) all.members.push_back(request_of(task));
  return placement::amounts_of(state.cluster, all);
}

}  // namespace

placement::Amounts used_in(const State& state, const std::string& queue) {
  return used(state, [&](const workload::Task& task) {
    return task.queue == queue || task.queue.starts_with(queue + "/");
  });
}

placement::Amounts used_by(const State& state, const placement::Subject& subject) {
  return used(state, [&](const workload::Task& task) {
    return subject.name ==
           (subject.kind == placement::SubjectKind::kUser ? task.owner_name : task.name_space);
  });
}

placement::Amounts wanted_by(const State& state, const TaskRecord& record) {
  placement::Gang gang;
  for (const auto* member : members_of(record.task, state.finder()))
    gang.members.push_back(request_of(member->task));
  return placement::amounts_of(state.cluster, gang);
}

}  // namespace drover::control

#include "control/draft.h"

#include <algorithm>

namespace drover::control {

const TaskRecord* Draft::find(const std::string& id) const {
  const auto changed = changed_.find(id);
  return changed != changed_.end() ? &changed->second : state_.find(id);
}

TaskRecord& Draft::change(const std::string& id) {
  const auto found = changed_.find(id);
  return found != changed_.end() ? found->second : changed_.emplace(id, state_.tasks.at(id)).first->second;
}

void Draft::add(TaskRecord record) {
  record.sequence = state_.next_sequence + added_++;
  const auto id = record.task.id;
  changed_.emplace(id, std::move(record));
}

void Draft::remove(const std::string& id) {
  outcome_.removed.push_back(id);
  act(action::Forget{id});
}

std::vector<placement::Job> Draft::waiting() const {
  std::vector<placement::Job> jobs;
  jobs.reserve(state_.queue.size() + changed_.size());
  const auto add = [&](const TaskRecord& record) {
    const auto& gang = record.task.gang;
    if (record.state != TaskState::kQueued || (gang && gang->rank != 0)) return;
    const auto members = gang ? members_of(record.task, finder()) : std::vector{&record};
    if (waits_whole(members)) jobs.push_back(job_of(members));
  };
  for (const auto& [sequence, id] : state_.queue)
    if (!changed_.contains(id)) add(state_.tasks.at(id));
  for (const auto& [id, record] : changed_) add(record);
  return jobs;
}

std::vector<placement::RunningJob> Draft::running() const {
  auto active = state_.active;
  for (const auto& [id, record] : changed_) active.insert(id);
  std::vector<placement::RunningJob> jobs;
  for (const auto& id : active) {
    const auto* record = find(id);
    if (!owns_resources(record->state)) continue;
    if (auto job = running_job(*record, machine(), finder(), now_)) jobs.push_back(std::move(*job));
  }
  return jobs;
}

placement::Cluster Draft::cluster() const {
  auto cluster = state_.cluster;
  if (outcome_.node) cluster.set_node(*outcome_.node);
  std::map<std::string, const workload::Task*> jobs;
  for (const auto& [id, record] : changed_)
    if (moved(state_.find(id), record)) jobs.emplace(job_id(record.task), &record.task);
  settle(cluster, state_.node, jobs, finder());
  return cluster;
}

bool Draft::plan_is_due() const {
  if (!state_.standing || outcome_.node || outcome_.rules) return true;
  return std::any_of(changed_.begin(), changed_.end(), [&](const auto& entry) {
    const auto& [id, record] = entry;
    const auto* before = state_.find(id);
    const bool waited = before != nullptr && before->state == TaskState::kQueued;
    const bool owned = before != nullptr && owns_resources(before->state);
    return waited != (record.state == TaskState::kQueued) || (owned && !owns_resources(record.state));
  });
}

Outcome Draft::finish() && {
  for (auto& [id, record] : changed_) outcome_.changed.push_back(std::move(record));
  return std::move(outcome_);
}

}  // namespace drover::control

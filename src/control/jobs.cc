#include "control/jobs.h"

#include <fmt/format.h>

#include <algorithm>

#include "control/group_name.h"

namespace drover::control {
namespace {

bool ends(const TaskRecord* record) {
  return record->state == TaskState::kStopping;
}

template <typename Predicate>
bool whole(const std::vector<const TaskRecord*>& members, Predicate predicate) {
  if (members.empty()) return false;
  const auto& gang = members.front()->task.gang;
  return members.size() == static_cast<std::size_t>(gang ? gang->size : 1) &&
         std::all_of(members.begin(), members.end(), predicate);
}

placement::RunningJob running(const std::vector<const TaskRecord*>& members, const placement::Node& machine,
                              TimePoint now) {
  placement::RunningJob job;
  job.job = job_of(members);
  job.started_at = TimePoint::min();
  for (const auto* record : members) {
    job.decisions.push_back(decision_of(*record, machine));
    job.started_at = std::max(job.started_at, record->started_at.value_or(now));
  }
  job.ending = std::any_of(members.begin(), members.end(), ends);
  return job;
}

void release(placement::Cluster& cluster, const workload::Task& task) {
  cluster.release(job_id(task));
  for (int rank = 0; task.gang && rank < task.gang->size; ++rank) {
    cluster.release(member_id(task.gang->id, rank));
    cluster.release(fmt::format("{}/{}", task.gang->id, rank));
  }
}

void take(placement::Cluster& cluster, const std::string& node, const workload::Task& task,
          const Find& find) {
  const auto members = members_of(task, find);
  const auto machine_of = [&](const TaskRecord& record) -> const placement::Node& {
    const auto* found = record.node.empty() ? nullptr : cluster.node(record.node);
    return found == nullptr ? *cluster.node(node) : *found;
  };
  if (runs_whole(members)) {
    const auto job = job_of(members);
    for (std::size_t rank = 0; rank < members.size(); ++rank)
      cluster.restore(placement::allocation_id(job, rank), job.gang.members[rank],
                      decision_of(*members[rank], machine_of(*members[rank])));
    return;
  }
  for (const auto* record : members)
    if (owns_resources(record->state))
      cluster.restore(record->task.id, request_of(record->task), decision_of(*record, machine_of(*record)));
}

}  // namespace

std::string member_id(const std::string& gang, int rank) {
  return fmt::format("{}-{}", gang, rank);
}

const std::string& job_id(const workload::Task& task) {
  return task.gang ? task.gang->id : task.id;
}

const std::string& submission_id(const workload::Task& task) {
  return task.batch.array ? task.batch.array->id : job_id(task);
}

std::vector<const TaskRecord*> members_of(const workload::Task& task, const Find& find) {
  std::vector<const TaskRecord*> members;
  if (!task.gang) {
    if (const auto* record = find(task.id)) members.push_back(record);
    return members;
  }
  for (int rank = 0; rank < task.gang->size; ++rank)
    if (const auto* record = find(member_id(task.gang->id, rank))) members.push_back(record);
  return members;
}

std::vector<const TaskRecord*> members_of_job(const std::string& job, const Find& find) {
  const auto* record = find(job);
  if (record == nullptr) record = find(member_id(job, 0));
  if (record == nullptr || job_id(record->task) != job) return {};
  return members_of(record->task, find);
}

bool waits_whole(const std::vector<const TaskRecord*>& members) {
  return whole(members, [](const auto* record) { return record->state == TaskState::kQueued; });
}

bool runs_whole(const std::vector<const TaskRecord*>& members) {
  return whole(members, [](const auto* record) { return owns_resources(record->state); });
}

placement::Request request_of(const workload::Task& task) {
  auto request = task.resources;
  request.group = group_of(task);
  return request;
}

placement::Decision decision_of(const TaskRecord& record, const placement::Node& machine) {
  placement::Decision decision{machine.name, record.gpus, record.cpus, record.nics};
  for (auto& grant : decision.gpus) {
    if (grant.memory_bytes > 0 || grant.milli < 1000) continue;
    for (const auto& device : machine.inventory.devices)
      if (device.uuid == grant.uuid) grant.memory_bytes = device.memory_bytes.value_or(0);
  }
  return decision;
}

placement::Job job_of(const std::vector<const TaskRecord*>& members) {
  const auto& first = members.front()->task;
  placement::Job job;
  job.id = job_id(first);
  for (const auto* record : members) job.gang.members.push_back(request_of(record->task));
  if (first.gang) job.gang.arrangement = first.gang->arrangement;
  job.user = first.owner_name;
  job.name_space = first.name_space;
  job.queue = first.queue;
  job.priority = first.priority;
  job.sequence = members.front()->sequence;
  job.time_limit = first.timeout;
  return job;
}

bool moved(const TaskRecord* before, const TaskRecord& after) {
  const bool owned = before != nullptr && owns_resources(before->state);
  if (owned != owns_resources(after.state)) return true;
  return owned && (before->gpus != after.gpus || before->cpus != after.cpus || before->nics != after.nics);
}

void settle(placement::Cluster& cluster, const std::string& node,
            const std::map<std::string, const workload::Task*>& jobs, const Find& find) {
  for (const auto& [job, task] : jobs) release(cluster, *task);
  for (const auto& [job, task] : jobs) take(cluster, node, *task, find);
}

std::optional<placement::RunningJob> running_job(const TaskRecord& record, const placement::Node& machine,
                                                 const Find& find, TimePoint now) {
  if (!record.task.gang) return running({&record}, machine, now);
  const auto members = members_of(record.task, find);
  if (runs_whole(members)) {
    if (record.task.gang->rank != 0) return std::nullopt;
    return running(members, machine, now);
  }
  auto rest = running({&record}, machine, now);
  rest.job.id = record.task.id;
  // A gang that begins to end is not put back as a whole any more, so it is nobody's victim.
  rest.ending = true;
  return rest;
}

}  // namespace drover::control

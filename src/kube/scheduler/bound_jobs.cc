#include "kube/scheduler/bound_jobs.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace drover::kube::scheduler {
namespace {

using placement::Job;
using placement::RunningJob;

/// As it is named in the cluster: allocation_id() knows it by the number of its members.
Job job_of_size(const std::string& id, std::size_t size) {
  Job job;
  job.id = id;
  job.gang.members.resize(size);
  return job;
}

/// What a GPU, or a part of one, has of memory, which pods do not tell. False when the cluster does not know
/// one of them.
bool complete(placement::Decision& decision, const placement::Cluster& cluster) {
  const auto* const node = cluster.node(decision.node);
  if (node == nullptr) return decision.gpus.empty();
  const auto& devices = node->inventory.devices;
  return std::ranges::all_of(decision.gpus, [&](placement::Grant& grant) {
    const auto device = std::ranges::find(devices, grant.uuid, &gpu::Device::uuid);
    if (device == devices.end()) return false;
    if (grant.memory_bytes == 0)
      grant.memory_bytes =
          workload::held_of({.milli = grant.milli}, device->memory_bytes.value_or(0)).memory_bytes;
    return true;
  });
}

}  // namespace

void BoundJobs::put(const std::string& uid, BoundPod pod) {
  remove(uid);
  auto job = pod.job.id;
  changed_.insert(job);
  job_of_[uid] = job;
  jobs_[std::move(job)].insert_or_assign(uid, std::move(pod));
}

void BoundJobs::remove(const std::string& uid) {
  const auto found = job_of_.find(uid);
  if (found == job_of_.end()) return;
  const auto job = jobs_.find(found->second);
  changed_.insert(found->second);
  job->second.erase(uid);
  if (job->second.empty()) jobs_.erase(job);
  job_of_.erase(found);
}

const BoundPod* BoundJobs::find(const std::string& uid) const {
  const auto found = job_of_.find(uid);
  return found == job_of_.end() ? nullptr : &jobs_.at(found->second).at(uid);
}

std::vector<std::string> BoundJobs::pods_of(const std::string& job) const {
  std::vector<std::string> uids;
  if (const auto found = jobs_.find(job); found != jobs_.end())
    for (const auto& [uid, pod] : found->second) uids.push_back(uid);
  return uids;
}

void BoundJobs::sync(placement::Cluster& cluster, bool anew) {
  if (anew) {
    sizes_.clear();
    for (const auto& [job, pods] : jobs_) changed_.insert(job);
  }
  if (std::exchange(nodes_changed_, false)) note_complete(cluster);
  if (changed_.empty()) return;
  for (const auto& job : changed_) drop(cluster, job);
  std::erase_if(running_, [this](const RunningJob& running) { return changed_.contains(running.job.id); });
  std::vector<RunningJob> added;
  for (const auto& job : changed_) {
    const auto found = jobs_.find(job);
    if (found == jobs_.end()) continue;
    auto running = add(cluster, job, found->second);
    if (found->second.begin()->second.ours) added.push_back(std::move(running));
  }
  changed_.clear();
  if (added.empty()) return;
  std::vector<RunningJob> merged;
  merged.reserve(running_.size() + added.size());
  const auto from = [](auto& jobs) {
    return std::pair(std::make_move_iterator(jobs.begin()), std::make_move_iterator(jobs.end()));
  };
  const auto [one, one_end] = from(running_);
  const auto [other, other_end] = from(added);
  std::merge(one, one_end, other, other_end, std::back_inserter(merged),
             [](const RunningJob& a, const RunningJob& b) { return a.job.id < b.job.id; });
  running_ = std::move(merged);
}

/// Their nodes came later than they.
void BoundJobs::note_complete(const placement::Cluster& cluster) {
  for (const auto& job : incomplete_) {
    const auto found = jobs_.find(job);
    const auto is_complete = [&](const auto& pod) {
      auto decision = pod.second.decision;
      return complete(decision, cluster);
    };
    if (found != jobs_.end() && std::ranges::all_of(found->second, is_complete)) changed_.insert(job);
  }
}

void BoundJobs::drop(placement::Cluster& cluster, const std::string& job) {
  incomplete_.erase(job);
  const auto size = sizes_.find(job);
  if (size == sizes_.end()) return;
  const auto known = job_of_size(job, size->second);
  for (std::size_t rank = 0; rank < size->second; ++rank)
    cluster.release(placement::allocation_id(known, rank));
  sizes_.erase(size);
}

RunningJob BoundJobs::add(placement::Cluster& cluster, const std::string& job, const Pods& pods) {
  const auto& first = pods.begin()->second;
  RunningJob running{first.job, {}, first.started, true};
  running.job.gang.members.clear();
  for (const auto& [uid, pod] : pods) {
    running.job.gang.members.push_back(pod.demand);
    running.decisions.push_back(pod.decision);
    if (!complete(running.decisions.back(), cluster)) incomplete_.insert(job);
    running.started_at = std::min(running.started_at, pod.started);
    running.ending = running.ending && pod.ending;
  }
  for (std::size_t rank = 0; rank < pods.size(); ++rank)
    cluster.restore(placement::allocation_id(running.job, rank), running.job.gang.members[rank],
                    running.decisions[rank]);
  sizes_[job] = pods.size();
  return running;
}

}  // namespace drover::kube::scheduler

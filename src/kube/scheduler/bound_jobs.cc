#include "kube/scheduler/bound_jobs.h"

#include <algorithm>
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
  for (const auto& job : changed_) drop(cluster, job);
  for (const auto& job : changed_)
    if (const auto found = jobs_.find(job); found != jobs_.end()) add(cluster, job, found->second);
  changed_.clear();
}

void BoundJobs::drop(placement::Cluster& cluster, const std::string& job) {
  if (const auto size = sizes_.find(job); size != sizes_.end()) {
    const auto known = job_of_size(job, size->second);
    for (std::size_t rank = 0; rank < size->second; ++rank)
      cluster.release(placement::allocation_id(known, rank));
    sizes_.erase(size);
  }
  const auto found = running_at_.find(job);
  if (found == running_at_.end()) return;
  const auto at = found->second;
  running_at_.erase(found);
  if (at + 1 != running_.size()) {
    running_[at] = std::move(running_.back());
    running_at_[running_[at].job.id] = at;
  }
  running_.pop_back();
}

void BoundJobs::add(placement::Cluster& cluster, const std::string& job, const Pods& pods) {
  const auto& first = pods.begin()->second;
  RunningJob running{first.job, {}, first.started, true};
  running.job.gang.members.clear();
  for (const auto& [uid, pod] : pods) {
    running.job.gang.members.push_back(pod.demand);
    running.decisions.push_back(pod.decision);
    running.started_at = std::min(running.started_at, pod.started);
    running.ending = running.ending && pod.ending;
  }
  for (std::size_t rank = 0; rank < pods.size(); ++rank)
    cluster.restore(placement::allocation_id(running.job, rank), running.job.gang.members[rank],
                    running.decisions[rank]);
  sizes_[job] = pods.size();
  if (!first.ours) return;
  running_at_[job] = running_.size();
  running_.push_back(std::move(running));
}

}  // namespace drover::kube::scheduler

#pragma once

// What is bound to nodes, as placement sees it: the jobs of ours that run, gangs as one, and what pods of
// others take. Changes are noted at once, and come into placement's cluster together. One thread at a time.

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "placement/cluster.h"
#include "placement/schedule.h"

namespace drover::kube::scheduler {

struct BoundPod {
  placement::Job job;  ///< without its gang; pods of one gang are one job
  placement::Request demand;
  placement::Decision decision;
  TimePoint started{};
  bool ending = false;
  bool ours = true;  ///< those of others are nobody's victims, and are in no queue
};

class BoundJobs {
 public:
  void put(const std::string& uid, BoundPod pod);
  void remove(const std::string& uid);
  /// Nodes of the cluster have changed.
  void note_nodes() { nodes_changed_ = true; }
  /// nullptr when it is not known.
  const BoundPod* find(const std::string& uid) const;

  /// Brings into the cluster what has changed since the last time; everything, when it is a new cluster.
  void sync(placement::Cluster& cluster, bool anew = false);
  /// Of ours, as of the last sync(); by their ids.
  const std::vector<placement::RunningJob>& running() const { return running_; }
  /// The uids of its pods.
  std::vector<std::string> pods_of(const std::string& job) const;

 private:
  using Pods = std::map<std::string, BoundPod>;  ///< by uid

  void note_complete(const placement::Cluster& cluster);
  void drop(placement::Cluster& cluster, const std::string& job);
  placement::RunningJob add(placement::Cluster& cluster, const std::string& job, const Pods& pods);

  std::unordered_map<std::string, Pods> jobs_;
  std::unordered_map<std::string, std::string> job_of_;  ///< by uid
  std::set<std::string> changed_;                        ///< jobs
  bool nodes_changed_ = false;
  std::set<std::string> incomplete_;  ///< jobs with GPUs that the cluster did not know
  std::vector<placement::RunningJob> running_;
  std::unordered_map<std::string, std::size_t> sizes_;  ///< of jobs in the cluster
};

}  // namespace drover::kube::scheduler

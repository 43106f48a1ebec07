#pragma once

// What a scheduler would do with a cluster as it is now, for people who ask: where a pod is, or would go, or
// why it waits, and what stands in queues. In the words of the scheduler that runs. Pure.

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/units.h"
#include "kube/scheduler/scheduler.h"

namespace drover::kube {

class ClusterAnswers {
 public:
  /// Decides once. `scheduler` outlives it.
  ClusterAnswers(scheduler::Scheduler& scheduler, const scheduler::SchedulerOptions& options, TimePoint now);

  /// Of a pod that is known. {"state": "bound"|"starts"|"waits"|"gated"|"other", …}: with its node and GPUs,
  /// or with "message", which is what its condition says, "place", "of", "queue" and the pods that would be
  /// ended.
  nlohmann::json of_pod(const std::string& uid) const;
  /// {"queues": […]}, as the API of one machine lists them; paths are written as Queues are named.
  nlohmann::json of_queues() const;

 private:
  nlohmann::json of_waiter(const scheduler::Scheduler::Waiter& waiter) const;
  nlohmann::json waiting_in(const std::string& queue) const;

  scheduler::Scheduler& scheduler_;
  const scheduler::SchedulerOptions options_;
  scheduler::Scheduler::Use use_;
  std::vector<scheduler::Scheduler::Waiter> waiters_;
  std::map<std::string, std::size_t> waiter_of_;               ///< by uid, in waiters_
  std::set<std::string> starts_;                               ///< uids
  std::map<std::string, std::vector<std::string>> ended_for_;  ///< "team/train", by the job for which
};

}  // namespace drover::kube

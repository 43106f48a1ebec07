#pragma once

// Which pods are to be bound to which nodes now, with which GPUs; which are to be ended for others; and why
// the rest waits. It is told of the cluster object by object, as watches see it, and decides with the one
// plan() that all of Drover has. It does nothing itself: what it decides counts as done from then on, until
// the cluster says so too, or its caller that it has failed.
//
//   scheduler.put_node(node, gpus);
//   scheduler.put_pod(pod);
//   for (const auto& start : scheduler.decide(now).starts) …  // bind; failed(uid) when that was refused
//
// Pods of other schedulers, once bound, take what they ask for. Which GPUs such a pod has is known when the
// pod says so; else the first that are free are taken for them. One thread at a time; deterministic.

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "gpu/device.h"
#include "kube/scheduler/cluster.h"
#include "kube/scheduler/demand.h"
#include "kube/scheduler/eligible_nodes.h"
#include "kube/scheduler/pod.h"
#include "kube/scheduler/unschedulable.h"
#include "placement/cluster.h"
#include "placement/schedule.h"
#include "placement/wiring.h"

namespace drover::kube::scheduler {

struct SchedulerOptions {
  std::string name = "drover";  ///< pods with this schedulerName are ours
  std::string gpu_resource = kGpuResource;
  placement::NodePolicy policy = placement::NodePolicy::kPack;
};

/// A pod, by all the names that it has.
struct PodName {
  std::string uid;
  std::string name_space;
  std::string name;

  auto operator<=>(const PodName&) const = default;
};

struct Binding {
  PodName pod;
  std::string node;
  std::vector<std::string> gpus;  ///< UUIDs; none where the node does not say which GPUs it has
};

struct Start {
  std::string job;
  std::vector<Binding> bindings;  ///< all or none of them
};

struct Eviction {
  PodName pod;
  std::string job;  ///< for which
};

struct Round {
  std::vector<Start> starts;  ///< in order
  std::vector<Eviction> evictions;
  std::map<std::string, placement::Reasons> waiting;  ///< by the pod's uid: all of ours that may be planned
  std::vector<std::string> order;                     ///< uids, as they stand in the queue
  bool again = false;  ///< something could not be decided together with the rest: ask again at once
  std::optional<TimePoint> retry_at;  ///< then something that has failed may be tried again
};

class Scheduler {
 public:
  explicit Scheduler(SchedulerOptions options = {});

  /// `gpus` as its annotation says; without, GPUs are counted but not told apart.
  void put_node(Node node, std::optional<gpu::Inventory> gpus = {});
  void remove_node(const std::string& name);
  void put_pod(Pod pod);
  void remove_pod(const std::string& uid);
  void set_rules(placement::Rules rules);
  /// For what else stands in the cluster: namespaces, volumes and their claims, classes of devices. What
  /// `change` does may matter to every pod.
  template <typename Change>
  void change_cluster(const Change& change) {
    change(cluster_);
    eligible_.note_all();
  }

  Round decide(TimePoint now);
  /// What was decided for the pod could not be done: it waits again, and is not planned before `until`.
  void failed(const std::string& uid, TimePoint until = {});
  /// Of all that wait, in their order.
  struct Waiter {
    PodName pod;
    Waits why;
  };
  std::vector<Waiter> waiters(const Round& round) const;

  const Cluster& cluster() const { return cluster_; }

 private:
  struct Known {
    Pod pod;                                  ///< as the cluster has it; its template and labels are shared
    std::shared_ptr<const PodTemplate> rest;  ///< without what placement counts
    placement::Request demand;
    std::string node;               ///< that it is bound to, or will be; "": it waits
    std::vector<std::string> gpus;  ///< that are taken for it there
    bool decided = false;           ///< the cluster does not say so yet
    bool evicted = false;           ///< nor that it is to end
    TimePoint not_before{};         ///< it was tried in vain
  };

  bool is_ours(const Pod& pod) const { return pod.made_from->scheduler_name == options_.name; }
  Known known(Pod pod);
  void take(const std::string& uid, Known& known);
  void give_back(const std::string& uid, const Known& known);
  void add_running(const std::string& uid, const Known& known);
  void remove_running(const std::string& uid);
  void guess_gpus();
  void reorder();
  void allocate(const std::string& uid, const Known& known);
  placement::Node placement_node(const Node& node, const std::optional<gpu::Inventory>& gpus) const;
  std::vector<placement::Job> waiting_jobs(TimePoint now, std::optional<TimePoint>& retry_at);
  std::optional<Start> start(const placement::Start& decided);

  const SchedulerOptions options_;
  Cluster cluster_;
  EligibleNodes eligible_{cluster_};
  placement::Cluster places_;
  placement::Rules rules_;
  Pool<PodTemplate> templates_;
  Pool<Labels> labels_;
  std::unordered_map<std::string, Known> pods_;  ///< by uid; those that have not ended
  std::set<std::string> waiting_;                ///< uids of ours
  std::set<std::string> without_gpus_;           ///< uids of those for which some have to be found
  std::set<std::string> gone_nodes_;             ///< on which there are still pods
  std::string last_node_;                        ///< of placement's, as far as they are in order
  bool out_of_order_ = false;
  std::vector<placement::RunningJob> running_;  ///< ours
  std::unordered_map<std::string, std::size_t> running_at_;
};

}  // namespace drover::kube::scheduler

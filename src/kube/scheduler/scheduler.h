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

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gpu/device.h"
#include "kube/scheduler/bound_jobs.h"
#include "kube/scheduler/claims/claim_book.h"
#include "kube/scheduler/cluster.h"
#include "kube/scheduler/demand.h"
#include "kube/scheduler/disruption_budgets.h"
#include "kube/scheduler/eligible_nodes.h"
#include "kube/scheduler/gangs/book.h"
#include "kube/scheduler/gangs/status.h"
#include "kube/scheduler/node_holds.h"
#include "kube/scheduler/sharing/pod_queue.h"
#include "kube/scheduler/sharing/rules.h"
#include "kube/scheduler/unschedulable.h"
#include "placement/cluster.h"
#include "placement/schedule.h"

namespace drover::kube::scheduler {

struct SchedulerOptions {
  std::string name = "drover";  ///< pods with this schedulerName are ours
  std::string gpu_resource = kGpuResource;
  placement::NodePolicy policy = placement::NodePolicy::kPack;
  ServerVersion version = kNewestKnown;
  /// So long after a part of a gang was bound, and the rest has no place, the part is ended.
  std::chrono::milliseconds half_gang_grace{20'000};
  std::chrono::seconds release_grace = kReleaseGrace;
  std::chrono::seconds volume_patience{600};  ///< with volumes that are to be made or bound
  bool hold_nodes = true;                     ///< NodeHolds
};

/// All that is to be known of a pod.
struct PodObject {
  Pod pod;
  std::optional<GangMember> gang = {};
  QueueNames queues = {};
  std::string mistake = {};  ///< why it can never be planned, in words for whoever made it; "": it can
};
/// Under which its pods are one job: of a gang, or of itself.
std::string job_id(const PodObject& object);
Result<PodObject> read_pod_object(const nlohmann::json& pod, const ServerVersion& version = kNewestKnown);

/// A pod, by all the names that it has.
struct PodName {
  std::string uid;
  std::string name_space;
  std::string name;

  auto operator<=>(const PodName&) const = default;
};

PodName name_of(const Pod& pod);

struct Binding {
  PodName pod;
  std::string node;
  std::vector<std::string> gpus;      ///< UUIDs, by limits; none where the node does not say which it has
  std::vector<ClaimDecision> claims;  ///< to be written before
  /// Another scheduler binds it: its gate is to be opened, and until it is bound it has room on `node`.
  bool opens_gate = false;
  std::vector<std::string> claimed = {};  ///< UUIDs of the GPUs that its claims give it
};

struct Start {
  std::string job;
  std::vector<Binding> bindings;  ///< all or none of them
};

struct Eviction {
  PodName pod = {};
  std::string job = {};    ///< for which; "": for none
  PodName winner = {};     ///< of that job: the first of its pods, or nobody
  bool lent = false;       ///< the winner has no higher priority: its queue takes back what it had lent
  bool half_gang = false;  ///< its own has no place for the rest of it
  std::string device_taint = {};  ///< the key of one that ends who has the device
};

/// Room that is no longer kept for a pod whose gate was opened: nobody has bound it in time.
struct Lapse {
  PodName pod;
  std::string node;
};

/// Claims of a pod that are to get their volumes on a node, before it is bound there.
struct VolumeWrite {
  PodName pod;
  std::string node;
  std::vector<VolumeDecision> volumes;
};
/// What came to nothing: as far as it can be taken back, it is to be.
struct VolumeUndo {
  VolumeWrite what;
  std::string why;  ///< for people
};

/// What an earlier try, perhaps another scheduler's, has left in a claim of a pod that waits. It is not
/// planned until undone() is called.
struct LeftClaim {
  PodName pod;
  std::string claim;
  std::string uid;
  bool made;  ///< it was made for the pod's resources, and is deleted; else the pod is a user of it no more
};

struct Round {
  std::vector<Start> starts;  ///< in order
  std::vector<Eviction> evictions;
  std::map<std::string, placement::Reasons> waiting;  ///< by the pod's uid: all of ours that may be planned
  std::vector<std::string> order;                     ///< uids of those that stand in queues, in their order
  std::vector<std::string> held;                      ///< of the others: they may not be planned yet
  std::vector<VolumeWrite> volumes;                   ///< of pods that are in no start yet
  std::vector<VolumeUndo> volume_undos;
  std::vector<Lapse> lapses;
  std::vector<LeftClaim> left_claims;  ///< to be undone, unless their pods are bound by now
  NodeHolds::Changes node_holds;
  bool again = false;  ///< something could not be decided together with the rest: ask again at once
  std::optional<TimePoint> retry_at;  ///< then something that has failed may be tried again
};

class Scheduler {
 public:
  explicit Scheduler(SchedulerOptions options = {});

  /// `gpus` as its annotation says; without, GPUs are counted but not told apart.
  void put_node(Node node, std::optional<gpu::Inventory> gpus = {});
  void remove_node(const std::string& name);
  void put_pod(PodObject object);
  void remove_pod(const std::string& uid);
  void put_namespace(const std::string& name, Labels labels, QueueNames queues);
  void remove_namespace(const std::string& name);
  void set_sharing(Sharing sharing) {
    sharing_ = std::move(sharing);
    changed_ = true;
  }
  /// Devices that drivers publish, and claims of them.
  void put_slice(ResourceSlice slice);
  void remove_slice(const std::string& name);
  void put_claim(ResourceClaim claim);
  void remove_claim(const std::string& uid);
  void put_device_class(const DeviceClass& device_class);
  void remove_device_class(const std::string& name);
  void put_taint_rule(const DeviceTaintRule& rule);
  void remove_taint_rule(const std::string& name);
  /// PodGroups, Jobs and what else says how large gangs are.
  GangBook& gangs() {
    changed_ = true;
    return gangs_;
  }
  BudgetBook& budgets() {
    changed_ = true;
    return budgets_;
  }
  std::vector<ObjectPath> absent_groups() const { return gangs_.absent(); }
  /// For what else stands in the cluster: volumes and their claims, classes of devices. What `change` does
  /// may matter to every pod.
  template <typename Change>
  void change_cluster(const Change& change) {
    change(cluster_);
    eligible_.note_all();
    changed_ = true;
  }

  /// Whether something waits for which the next decision may be another than the last one.
  bool has_changed() const {
    return changed_ && (!waiting_.empty() || !volume_waits_.empty() || !held_.empty() || taints_changed_);
  }
  /// Nobody may hold nodes: from now on room is taken wherever there is some.
  void hold_no_nodes() { holds_nodes_ = false; }
  /// For whoever may have to decide soon: what is asked of every node and device for the first time is asked
  /// now, and remembered.
  void look_ahead();
  /// Each of the starts is told `on_start` as soon as it is decided, and stands in the round too.
  using OnStart = std::function<void(const Start& start)>;
  Round decide(TimePoint now, const OnStart& on_start = {});
  /// What was decided for the pod could not be done: it waits again, and is not planned before `until`. What
  /// stands in its claims counts on when they could not be written back.
  void failed(const std::string& uid, TimePoint until = {}, bool claims_stand = false);
  /// Whether or not it could be. The pod is planned again when the claim is told to be as it should, or from
  /// `until` on: what is still there then is to be undone once more.
  void undone(const LeftClaim& left, TimePoint until);
  /// Those that wait, of the last round, with what would help: as far as that is found in little time.
  struct Waiter {
    PodName pod;
    Waits why;
    std::string job = {};                           ///< the same for all of a gang that wait together
    bool speaks = true;                             ///< the first of them
    std::optional<GangBook::Reference> group = {};  ///< the gang's object, with the first of them
    bool gated = false;  ///< it waits for its turn before another scheduler may bind it
  };
  std::vector<Waiter> waiters(const Round& round);
  /// PodGroups of Kubernetes' own that do not wait.
  struct Group {
    GangBook::Reference object;
    GangOutcome outcome;
  };
  std::vector<Group> started_groups() const;
  /// Whether there are queues or quotas.
  bool is_shared() const { return !sharing_.rules.queues.empty() || !sharing_.rules.quotas.empty(); }
  /// What queues hold, by path, those of their children among it; and namespaces. Pods that wait were so in
  /// the round.
  struct Use {
    Sharing sharing;
    std::map<std::string, SharingUse> queues, namespaces;
  };
  Use use(const Round& round) const;

  const Cluster& cluster() const { return cluster_; }
  /// Of pods that have not ended; "": there is none of that name.
  std::string uid_of(std::string_view name_space, std::string_view name) const;
  /// nullptr: it is not known.
  const PodObject* find_pod(const std::string& uid) const;
  bool has_claim(std::string_view name_space, std::string_view name) const {
    return claims_.pools().claim(name_space, name) != nullptr;
  }
  /// Where a pod that is known has, or is to have, its place; "": it waits.
  std::string node_of(const std::string& uid) const;
  /// UUIDs of the GPUs that a pod is known to have there, by limits and by claims.
  std::vector<std::string> gpus_of(const std::string& uid) const;
  bool is_ours(const PodObject& pod) const { return pod.pod.made_from->scheduler_name == options_.name; }

 private:
  struct Known {
    PodObject object;                         ///< as the cluster has it; template and labels are shared
    std::shared_ptr<const PodTemplate> rest;  ///< without what placement counts
    placement::Request demand;
    std::optional<placement::Request> of_claims;  ///< what the GPUs that its claims give must be like
    std::string node;                             ///< that it is bound to, or will be; "": it waits
    std::vector<std::string> gpus;                ///< that are taken for it there
    bool decided = false;                         ///< the cluster does not say so yet
    bool evicted = false;                         ///< nor that it is to end
    bool queued = false;                          ///< another scheduler binds it, when its turn has come
    bool lapsed = false;                          ///< and has not bound it in time
    TimePoint not_before{};                       ///< it was tried in vain
    int undoing = 0;                              ///< so much of earlier tries is being undone
    bool until_undone = false;                    ///< then it need not wait any longer
    std::vector<ClaimDecision> claims;            ///< that were decided with it
    std::vector<VolumeDecision> volumes = {};     ///< likewise, as long as they are not bound
  };
  struct VolumeWait {
    Start start;
    TimePoint until;
  };
  struct DecidedClaim {
    ResourceClaim now;
    ResourceClaim told;  ///< as the API server said last
  };
  /// Jobs that wait, and the pods that they are, by rank.
  struct Waiting {
    std::vector<placement::Job> jobs;
    std::unordered_map<std::string, std::vector<std::string>> pods;
  };

  class Rehearsal;

  bool is_ours(const Known& known) const { return known.queued || is_ours(known.object); }
  Known known(PodObject object);
  bool is_as_known(const Known& next, const Known& now) const;
  void take(const std::string& uid, Known& known);
  void give_back(const std::string& uid, const Known& known);
  BoundPod bound_pod(const Known& known) const;
  void assume(const std::string& uid, const std::string& node, const std::vector<placement::Grant>& gpus);
  void take_back(const std::string& uid, bool claims_stand = false);
  void keep_volumes(Known& known, std::vector<VolumeDecision> volumes, const std::string& node);
  void drop_volumes(Known& known);
  bool begin_volumes(const Start& start, TimePoint now, Round& round);
  void end_volumes(TimePoint now, Round& round, const OnStart& on_start);
  void end_wait(const VolumeWait& wait, const std::string& why, TimePoint now, Round& round);
  void enter_by_gate(Known& known, Pod& pod);
  void lapse(Known& known);
  void end_holds(TimePoint now, Round& round);
  static void tell_of_the_other_door(placement::Reasons& reasons);
  void prepare();
  void follow_queues();
  void guess_gpus();
  bool names_gpus(const std::string& node) const;
  placement::Node placement_node(const Node& node) const;
  void put_places(const std::string& name);
  int gpus_by_limits(const Known& known) const;
  void evict_tainted(TimePoint now, Round& round);
  bool has_left_claims(const std::string& uid, Round& round);
  void give_up_claims(const std::string& uid, Round& round);
  void undo(LeftClaim left, Round& round);
  void note_undone(const std::string& pod_uid);
  void evict(const std::vector<std::string>& uids, Eviction why, TimePoint now, Round& round);
  void end_half_gangs(TimePoint now, Round& round);
  bool lets_admins(const std::string& name_space) const;
  std::vector<placement::Grant> claimed_gpus(const Known& known) const;
  std::vector<std::string> gpus_of_claims(const Pod& pod) const;
  const ResourceClaim* common_claim(const Known& known) const;
  placement::Request demand_of_common(placement::Request demand, const ResourceClaim& claim) const;
  placement::Request demand_with(const Known& known, const std::vector<placement::Grant>& gpus) const;
  std::vector<std::string> users_of(const ResourceClaim& claim) const;
  Known* owner_of(const ResourceClaim& claim);
  void follow_claims(const Pod& pod);
  Result<ClaimBook::Claims> claims_to_give(const Pod& pod, const ResourceClaim* made) const;
  void follow_claim(const std::string& uid);
  void drop_claim(const std::string& uid);
  void count_anew(const std::set<std::string>& uids);
  bool drop_claim_to_come(const std::string& pod_uid);
  bool take_claims(Known& known, const NodeState& node, std::vector<placement::Grant>& gpus);
  bool had_nothing(const Known& known, const std::string& node);
  void give_back_claims(Known& known, bool stand);
  void forget_decided(const std::string& claim_uid, const std::string& pod_uid);

  std::string queue_of(const Known& known) const;
  placement::Job job_of(const Known& known, const std::string& queue) const;
  Result<placement::Request> demand_now(const Known& known);
  Waiting waiting_jobs(TimePoint now, Round& round);
  void add_job(placement::Job job, const std::vector<std::string>& uids, Waiting& waiting, Round& round,
               const std::string& topology_key = "");
  static void hold(const std::vector<std::string>& uids, placement::Dimension why, const std::string& words,
                   Round& round);
  void add_gang(const GangIdentity& gang, TimePoint now, Waiting& waiting, Round& round);
  bool may_wait(const std::string& uid, const std::string& queue, TimePoint now, Round& round);
  void keep_in_one_domain(placement::Gang& gang, const std::string& topology_key);
  bool start_as_planned(const placement::Start& decided, const std::vector<std::string>& uids);
  Start start_of(const std::string& job, const std::vector<std::string>& uids) const;
  static void tell_start(Start start, Round& round, const OnStart& on_start);
  bool is_free(const Known& known, const placement::Decision& decision);
  bool may_use_room(const Known& known, const NodeState& state, bool matters);
  bool wish_for_room(const placement::Start& decided, const std::vector<std::string>& uids);
  bool start_on(const std::string& uid, const placement::Decision& decision);
  bool place_one_by_one(const std::vector<std::string>& uids, const std::vector<std::string>& names);

  const SchedulerOptions options_;
  Cluster cluster_;
  EligibleNodes eligible_{cluster_};
  NodeHolds holds_;
  bool holds_nodes_ = options_.hold_nodes;
  GangBook gangs_;
  std::vector<GangIdentity> half_gangs_;  ///< whose rest waits, in this round
  ClaimBook claims_{options_.version};
  std::map<std::string, DecidedClaim> decided_claims_;  ///< by uid: the API server does not say so yet
  std::map<std::string, std::optional<gpu::Inventory>, std::less<>> gpus_;  ///< by node: as annotations say
  Sharing sharing_;
  std::map<std::string, QueueNames, std::less<>> namespace_queues_;
  placement::Cluster places_;
  BoundJobs bound_;
  BudgetBook budgets_;
  Pool<PodTemplate> templates_;
  Pool<Labels> labels_;
  std::unordered_map<std::string, Known> pods_;  ///< by uid; those that have not ended
  std::set<std::string> waiting_;                ///< uids of ours
  std::vector<VolumeWait> volume_waits_;
  std::set<std::string> held_;          ///< uids: their gates are, or will be, open
  std::set<std::string> without_gpus_;  ///< uids of those for which some have to be found
  std::set<std::string> gone_nodes_;    ///< on which there are still pods
  std::string last_node_;               ///< of placement's, as far as they are in order
  bool out_of_order_ = false;
  bool changed_ = true;
  bool taints_changed_ = false;  ///< of devices, or who has them
  bool planning_ = false;        ///< placement does, and must not be asked
  bool improvised_ = false;      ///< in this round something was put elsewhere than planned
  Waiting left_;                 ///< what did not start in the last round
  TimePoint decided_at_{};
  std::map<std::string, std::vector<std::string>>
      remedies_;  ///< of jobs in left_, as far as they were sought
};

}  // namespace drover::kube::scheduler

#include "kube/scheduler/gangs/group.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/shorten.h"
#include "kube/scheduler/fields.h"

namespace drover::kube::scheduler {
namespace {

using nlohmann::json;

class GangGroupReader {
 public:
  explicit GangGroupReader(const json& object) : object_(object), spec_(reader_.object(object, "spec")) {}

  Result<GangGroup> read(const Resource& resource) {
    if (resource.group == "scheduling.k8s.io")
      native();
    else if (resource.group == "batch")
      group_.minimum = at_once(spec_);
    else if (resource.group == "jobset.x-k8s.io")
      job_set();
    else if (resource.group == "leaderworkerset.x-k8s.io")
      leader_worker_set();
    else if (resource.group == "kubeflow.org")
      kubeflow();
    else
      of_scheduler();
    group_.uid = reader_.text(reader_.object(object_, "metadata"), "uid");
    DROVER_CHECK_OK(reader_.status(fmt::format("'{}' of {}", shortened(key_of(object_)), resource.plural)));
    return std::move(group_);
  }

 private:
  void native() {
    const auto& policy = reader_.object(spec_, "schedulingPolicy");
    group_.minimum = count(reader_.object(policy, "gang"), "minCount", 1);
    for (const auto& term : reader_.objects(reader_.object(spec_, "schedulingConstraints"), "topology"))
      group_.topology_key = reader_.text(term, "key");
    group_.priority = reader_.number(spec_, "priority");
    if (const auto preempts = reader_.text(spec_, "preemptionPolicy"); !preempts.empty())
      group_.preempts = preempts != "Never";
  }

  /// Coscheduling's, Volcano's and KAI's have their first field in common.
  void of_scheduler() {
    group_.minimum = count(spec_, "minMember", 1);
    group_.queue = reader_.text(spec_, "queue");
    for (const auto& [name, unused] : reader_.object(spec_, "minTaskMember").items())
      group_.of_subgroups[name] = count(spec_.at("minTaskMember"), name.c_str(), 1);
    for (const auto& subgroup : reader_.objects(spec_, "subGroups"))
      group_.of_subgroups[reader_.text(subgroup, "name")] = count(subgroup, "minMember", 1);
    group_.topology_key = reader_.text(reader_.object(spec_, "topologyConstraint"), "requiredTopologyLevel");
    if (reader_.number(spec_, "scheduleTimeoutSeconds"))
      group_.schedule_timeout = std::chrono::seconds(count(spec_, "scheduleTimeoutSeconds", 0));
  }

  /// A JobSet makes its Jobs at once, but for those that wait for others.
  void job_set() {
    const bool in_order =
        reader_.text(reader_.object(spec_, "startupPolicy"), "startupPolicyOrder") == "InOrder";
    int sum = 0;
    for (const auto& job : reader_.objects(spec_, "replicatedJobs")) {
      if (!reader_.objects(job, "dependsOn").empty()) continue;
      const auto& template_ = reader_.object(reader_.object(job, "template"), "spec");
      sum = in_range(sum + std::int64_t{count(job, "replicas", 1)} * at_once(template_));
      if (in_order && sum > 0) break;
    }
    group_.minimum = std::max(sum, 1);
  }

  /// With the policy LeaderReady its workers are made when their leader runs.
  void leader_worker_set() {
    if (reader_.text(spec_, "startupPolicy") != "LeaderReady")
      group_.minimum = count(reader_.object(spec_, "leaderWorkerTemplate"), "size", 1);
  }

  void kubeflow() {
    const auto& policy = reader_.object(reader_.object(spec_, "runPolicy"), "schedulingPolicy");
    group_.queue = reader_.text(policy, "queue");
    if (reader_.number(policy, "minAvailable")) {
      group_.minimum = count(policy, "minAvailable", 1);
      return;
    }
    const bool later = reader_.text(spec_, "launcherCreationPolicy") == "WaitForWorkersReady";
    int sum = 0;
    for (const auto& [field, unused] : spec_.items()) {
      if (!field.ends_with("ReplicaSpecs")) continue;
      const auto& replicas = reader_.object(spec_, field.c_str());
      for (const auto& [role, unused_too] : replicas.items())
        if (!later || role != "Launcher")
          sum = in_range(std::int64_t{sum} + count(reader_.object(replicas, role.c_str()), "replicas", 1));
    }
    group_.minimum = std::max(sum, 1);
  }

  /// How many pods of a Job run at once when it starts.
  int at_once(const json& job) {
    const auto parallel = count(job, "parallelism", 1);
    return std::min(parallel, count(job, "completions", parallel));
  }

  int count(const json& object, const char* name, int otherwise) {
    const auto number = reader_.number(object, name);
    if (!number) return otherwise;
    if (*number >= 0 && *number <= std::numeric_limits<int>::max()) return static_cast<int>(*number);
    reader_.mistake(fmt::format("the field '{}' is {}", shortened(name), *number));
    return otherwise;
  }

  static int in_range(std::int64_t sum) {
    return static_cast<int>(std::min<std::int64_t>(sum, std::numeric_limits<int>::max()));
  }

  FieldReader reader_;
  const json& object_;
  const json& spec_;
  GangGroup group_;
};

}  // namespace

Result<GangGroup> read_gang_group(const Resource& resource, const json& object) {
  return GangGroupReader(object).read(resource);
}

}  // namespace drover::kube::scheduler

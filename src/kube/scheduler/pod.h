#pragma once

// What a scheduler has to know of a pod: a small value out of the API server's object. Pods that were made
// from one template share all but their identity once they stand in a Cluster. Pure.

#include <chrono>
#include <compare>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "kube/client/server_version.h"
#include "kube/scheduler/labels.h"
#include "kube/scheduler/queue_gate.h"
#include "kube/scheduler/resources.h"

namespace drover::kube::scheduler {

struct Toleration {
  std::string key;  ///< "": every key
  std::string operation = "Equal";
  std::string value;
  std::string effect;  ///< "": every effect

  auto operator<=>(const Toleration&) const = default;
};

struct HostPort {
  std::string protocol = "TCP";
  std::int64_t port = 0;
  std::string address = "0.0.0.0";

  auto operator<=>(const HostPort&) const = default;
};

/// Near, or far from, pods that are selected: in the same place by a label of nodes.
struct PodTerm {
  std::string topology_key;
  std::set<std::string> namespaces;
  Selector namespace_selector;
  Selector selector;

  auto operator<=>(const PodTerm&) const = default;
};

/// Of those with `whenUnsatisfiable: DoNotSchedule`.
struct SpreadConstraint {
  std::string topology_key;
  std::int64_t most_skew = 1;
  std::int64_t least_domains = 1;
  Selector selector;  ///< with what `matchLabelKeys` adds
  bool by_node_affinity = true;
  bool by_taints = false;

  auto operator<=>(const SpreadConstraint&) const = default;
};

/// What pods of one template have in common.
struct PodTemplate {
  std::string scheduler_name = {};
  std::int64_t priority = 0;
  bool preempts = true;
  std::vector<std::string> scheduling_gates = {};
  std::string operating_system = {};  ///< "linux"; often not said
  Resources requests = {};
  std::vector<ContainerResources> containers = {};  ///< none when it asks for nothing that others count
  std::vector<HostPort> ports = {};
  std::vector<Toleration> tolerations = {};
  Labels node_selector = {};
  std::optional<NodeTerms> node_terms = {};  ///< required ones; nullopt: every node
  std::vector<PodTerm> affinity = {};
  std::vector<PodTerm> anti_affinity = {};
  std::vector<SpreadConstraint> spread = {};
  std::vector<std::string> volume_claims = {};    ///< names of PersistentVolumeClaims in its namespace
  std::vector<std::string> resource_claims = {};  ///< names of its entries, or what they are made from
  std::vector<std::string> node_features = {};    ///< which its node must declare
  std::string gpu_request = {};                   ///< what it says of its GPUs (gpu_request.h)
  /// What it uses that we do not decide on, each as "uses volumes of the kind 'rbd'". Sorted.
  std::vector<std::string> unsupported = {};

  auto operator<=>(const PodTemplate&) const = default;
};

/// An entry of a pod's resource claims.
struct ClaimReference {
  std::string entry;
  std::string claim;  ///< the object's name; "": it is not made yet
  bool from_template = false;
  bool needed = true;  ///< false: it was found that there is none to be made

  auto operator<=>(const ClaimReference&) const = default;
};

struct Pod {
  std::string uid = {};
  std::string name_space = {};
  std::string name = {};
  std::string owner_uid = {};  ///< of its controller
  std::string node_name = {};  ///< "": waits
  bool ended = false;
  bool terminating = false;
  TimePoint created{};
  TimePoint bound{};                               ///< to its node; the epoch: nobody says when
  TimePoint started{};                             ///< by its node; the epoch: not yet
  std::optional<std::chrono::seconds> time_limit;  ///< it is ended so long after it has started
  std::vector<std::string> gpus = {};              ///< UUIDs of those that were chosen for it
  std::vector<ClaimReference> claims = {};
  Release release = {};
  std::shared_ptr<const Labels> labels = {};
  std::shared_ptr<const PodTemplate> made_from = {};
};

/// Some things are counted otherwise in earlier versions of Kubernetes.
inline constexpr ServerVersion kNewestKnown{1, 37};

/// kInvalid for what no API server gives out. What we do not know how to decide on is in `unsupported`.
Result<Pod> read_pod(const nlohmann::json& pod, const ServerVersion& version = kNewestKnown);

}  // namespace drover::kube::scheduler

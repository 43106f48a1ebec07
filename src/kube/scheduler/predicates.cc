#include "kube/scheduler/predicates.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/shorten.h"

namespace drover::kube::scheduler {
namespace {

constexpr std::array<std::string_view, kPredicates> kNames{
    "Supported",           "NodeUnschedulable", "NodeName",          "TaintToleration",
    "NodeAffinity",        "NodePorts",         "NodeResourcesFit",  "VolumeRestrictions",
    "VolumeBinding",       "VolumeZone",        "PodTopologySpread", "InterPodAffinity",
    "NodeDeclaredFeatures"};

// Volumes that no driver has to attach, or that a CSI driver does.
constexpr std::array<std::string_view, 4> kKnownVolumes{"csi", "hostPath", "local", "nfs"};

// A zone of a volume is also sought under the name that its label has had since Kubernetes 1.17.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kZoneKeys{
    {{"failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"},
     {"failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"},
     {"topology.kubernetes.io/zone", "topology.kubernetes.io/zone"},
     {"topology.kubernetes.io/region", "topology.kubernetes.io/region"}}};

std::size_t index(Predicate predicate) {
  return static_cast<std::size_t>(predicate);
}

bool conflict(const HostPort& one, const HostPort& other) {
  constexpr std::string_view kEvery = "0.0.0.0";
  return one.protocol == other.protocol && one.port == other.port &&
         (one.address == other.address || one.address == kEvery || other.address == kEvery);
}

std::int64_t amount_of(const Resources& resources, const std::string& name) {
  const auto found = resources.others.find(name);
  return found == resources.others.end() ? 0 : found->second;
}

/// One reason when it does not hold.
std::vector<std::string_view> unless(bool holds, std::string_view reason) {
  if (holds || reason.empty()) return {};
  return {reason};
}

}  // namespace

std::string_view name_of(Predicate predicate) {
  return kNames.at(index(predicate));
}

bool tolerates(const std::vector<Toleration>& tolerations, const Taint& taint) {
  return std::ranges::any_of(tolerations, [&](const Toleration& toleration) {
    if (!toleration.effect.empty() && toleration.effect != taint.effect) return false;
    if (!toleration.key.empty() && toleration.key != taint.key) return false;
    // Lt and Gt match only where a cluster has switched on what is in alpha.
    return toleration.operation == "Exists" ||
           (toleration.operation == "Equal" && toleration.value == taint.value);
  });
}

const Taint* untolerated(const Taints& taints, const std::vector<Toleration>& tolerations) {
  const auto found = std::ranges::find_if(taints, [&](const Taint& taint) {
    return (taint.effect == "NoSchedule" || taint.effect == "NoExecute") && !tolerates(tolerations, taint);
  });
  return found == taints.end() ? nullptr : &*found;
}

bool selects_node(const PodTemplate& pod, const Node& node) {
  const auto has = [&](const auto& wanted) {
    const auto* const value = label(node.labels, wanted.first);
    return value != nullptr && *value == wanted.second;
  };
  return std::ranges::all_of(pod.node_selector, has) &&
         (!pod.node_terms || matches(*pod.node_terms, node.labels, node.name));
}

Predicates::Predicates(const Cluster& cluster, const Pod& pod)
    : cluster_(cluster),
      pod_(pod),
      wants_(*pod.made_from),
      unbound_(cluster),
      affinity_(cluster, pod),
      spread_(cluster, pod) {
  everywhere_.at(index(Predicate::kSupported)) = wants_.unsupported;
  look_at_resources();
  look_at_taints();
  look_at_claims();
}

void Predicates::look_at_resources() {
  for (const auto& [name, amount] : wants_.requests.others) {
    if (amount == 0) continue;
    insufficient_.emplace(name, fmt::format("Insufficient {}", name));
    if (cluster_.has_device_class(name)) by_claim_.insert(name);
  }
}

void Predicates::look_at_taints() {
  for (const auto& taints : cluster_.taints())
    if (untolerated(*taints, wants_.tolerations) == nullptr) tolerated_.insert(taints.get());
  tolerates_unschedulable_ =
      tolerates(wants_.tolerations, {"node.kubernetes.io/unschedulable", "", "NoSchedule"});
}

void Predicates::look_at_claims() {
  for (const auto& name : wants_.volume_claims) {
    const auto* const claim = cluster_.volume_claim(pod_.name_space, name);
    if (claim == nullptr) {
      refuse(Predicate::kVolumeRestrictions, fmt::format("persistentvolumeclaim \"{}\" not found", name));
      continue;
    }
    if (claim->lost)
      refuse(Predicate::kVolumeBinding,
             fmt::format("persistentvolumeclaim \"{}\" bound to non-existent persistentvolume \"{}\"", name,
                         claim->volume_name));
    if (claim->terminating)
      refuse(Predicate::kVolumeBinding, fmt::format("persistentvolumeclaim \"{}\" is being deleted", name));
    claim_is_taken_ = claim_is_taken_ || (claim->for_one_pod && cluster_.is_used(pod_.name_space, name));
    if (claim->bound)
      look_at_volume(*claim);
    else
      look_at_unbound(*claim);
  }
}

void Predicates::look_at_unbound(const VolumeClaim& claim) {
  const auto* const storage_class =
      claim.volume_name.empty() ? cluster_.storage_class(claim.storage_class) : nullptr;
  if (storage_class == nullptr || !storage_class->waits)
    return refuse(Predicate::kVolumeBinding, "pod has unbound immediate PersistentVolumeClaims");
  unbound_.add(claim, *storage_class);
  look_at_driver(storage_class->provisioner, cluster_.has_csi_driver(storage_class->provisioner));
}

void Predicates::look_at_volume(const VolumeClaim& claim) {
  const auto* const volume = cluster_.volume(claim.volume_name);
  if (volume == nullptr) {
    lacks_volume_ = true;
    return;
  }
  if (std::ranges::find(kKnownVolumes, volume->kind) == kKnownVolumes.end())
    refuse(Predicate::kSupported, fmt::format("uses the PersistentVolume '{}' of the kind '{}'", volume->name,
                                              shortened(volume->kind)));
  if (volume->kind == "csi") look_at_driver(volume->driver, true);
  volumes_.push_back(volume);
}

void Predicates::look_at_driver(const std::string& name, bool is_needed) {
  const auto driver = shortened(name);
  auto& said = drivers_[name];
  said.limited = fmt::format("uses volumes of '{}', of which its node can have only so many", driver);
  if (is_needed) said.missing = fmt::format("uses volumes of '{}', of which its node has no driver", driver);
}

void Predicates::refuse(Predicate predicate, std::string reason) {
  everywhere_.at(index(predicate)).push_back(std::move(reason));
}

Verdict Predicates::check(const NodeState& node) const {
  for (std::size_t i = 0; i < kPredicates; ++i) {
    const auto& reasons = everywhere_.at(i);
    if (!reasons.empty()) return {static_cast<Predicate>(i), {reasons.begin(), reasons.end()}};
  }
  for (std::size_t i = 0; i < kPredicates; ++i) {
    const auto predicate = static_cast<Predicate>(i);
    if (auto reasons = at(predicate, node); !reasons.empty()) return {predicate, std::move(reasons)};
  }
  return {};
}

std::vector<std::string_view> Predicates::reasons(Predicate predicate, const NodeState& node) const {
  const auto& reasons = everywhere_.at(index(predicate));
  return reasons.empty() ? at(predicate, node) : Reasons(reasons.begin(), reasons.end());
}

std::vector<std::string_view> Predicates::at(Predicate predicate, const NodeState& state) const {
  if (!state.node) return {"node(s) not known"};
  const auto& node = *state.node;
  switch (predicate) {
    case Predicate::kSupported:
      return support(state);
    case Predicate::kNodeUnschedulable:
      return unless(!node.unschedulable || tolerates_unschedulable_, "node(s) were unschedulable");
    case Predicate::kNodeName:
      return unless(pod_.node_name.empty() || pod_.node_name == node.name,
                    "node(s) didn't match the requested node name");
    case Predicate::kTaintToleration:
      return unless(tolerated_.contains(node.taints.get()) && !(node.held && pod_.release.queued()),
                    "node(s) had untolerated taint(s)");
    case Predicate::kNodeAffinity:
      return unless(selects_node(wants_, node), "node(s) didn't match Pod's node affinity/selector");
    case Predicate::kNodePorts:
      return unless(has_free_ports(state), "node(s) didn't have free ports for the requested pod ports");
    case Predicate::kNodeResourcesFit:
      return resources(state);
    case Predicate::kVolumeRestrictions:
      return unless(
          !claim_is_taken_,
          "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already "
          "in-use by another pod");
    case Predicate::kVolumeBinding:
      return volumes(state);
    case Predicate::kVolumeZone:
      return unless(is_in_zones(node), "node(s) had no available volume zone");
    case Predicate::kPodTopologySpread:
      return unless(false, spread_.refusal(node));
    case Predicate::kInterPodAffinity:
      return unless(false, affinity_.refusal(node));
    case Predicate::kNodeDeclaredFeatures:
      return unless(
          std::ranges::all_of(wants_.node_features,
                              [&](const std::string& name) { return node.features.contains(name); }),
          "node(s) didn't match Pod's required features");
  }
  return {};
}

std::vector<std::string_view> Predicates::support(const NodeState& state) const {
  Reasons reasons;
  for (const auto& [driver, said] : drivers_) {
    const auto found = state.csi_drivers.find(driver);
    if (found != state.csi_drivers.end() && found->second)
      reasons.emplace_back(said.limited);
    else if (found == state.csi_drivers.end() && !said.missing.empty())
      reasons.emplace_back(said.missing);
  }
  return reasons;
}

bool Predicates::has_free_ports(const NodeState& state) const {
  return std::ranges::none_of(wants_.ports, [&](const HostPort& wanted) {
    for (auto taken = state.ports.lower_bound({wanted.protocol, wanted.port, ""});
         taken != state.ports.end() && taken->protocol == wanted.protocol && taken->port == wanted.port;
         ++taken)
      if (conflict(wanted, *taken)) return true;
    return false;
  });
}

std::vector<std::string_view> Predicates::resources(const NodeState& state) const {
  const auto& has = state.node->allocatable;
  const auto& taken = state.requested;
  const auto& wanted = wants_.requests;
  const auto lacks = [](std::int64_t wants, std::int64_t all, std::int64_t used) {
    return wants > 0 && wants > all - used;
  };
  Reasons reasons;
  if (std::cmp_greater_equal(state.pods.size(), state.node->most_pods)) reasons.emplace_back("Too many pods");
  if (lacks(wanted.cpu, has.cpu, taken.cpu)) reasons.emplace_back("Insufficient cpu");
  if (lacks(wanted.memory, has.memory, taken.memory)) reasons.emplace_back("Insufficient memory");
  if (lacks(wanted.storage, has.storage, taken.storage))
    reasons.emplace_back("Insufficient ephemeral-storage");
  for (const auto& [name, reason] : insufficient_)
    if (lacks(amount_of(wanted, name), amount_of(has, name), amount_of(taken, name)) &&
        !(by_claim_.contains(name) && amount_of(has, name) <= 0))
      reasons.emplace_back(reason);
  return reasons;
}

std::vector<std::string_view> Predicates::volumes(const NodeState& state) const {
  const auto& node = *state.node;
  // A volume's terms know nothing of names.
  const auto reaches = [&](const Volume* volume) {
    return !volume->node_terms || matches(*volume->node_terms, node.labels, "");
  };
  auto reasons = unbound_.choose(state).reasons;
  if (!std::ranges::all_of(volumes_, reaches))
    reasons.insert(reasons.begin(), "node(s) didn't match PersistentVolume's node affinity");
  else if (lacks_volume_)
    reasons.emplace_back("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)");
  return reasons;
}

bool Predicates::is_in_zones(const Node& node) const {
  // Where no node is in a zone, volumes are not either.
  if (std::ranges::none_of(kZoneKeys,
                           [&](const auto& key) { return label(node.labels, key.first) != nullptr; }))
    return true;
  const auto reaches = [&](const auto& zone) {
    const auto& [key, values] = zone;
    const auto* value = label(node.labels, key);
    if (value == nullptr)
      value = label(
          node.labels,
          std::ranges::find(kZoneKeys, key, &std::pair<std::string_view, std::string_view>::first)->second);
    return value != nullptr && values.contains(*value);
  };
  return std::ranges::all_of(
      volumes_, [&](const Volume* volume) { return std::ranges::all_of(volume->zones, reaches); });
}

}  // namespace drover::kube::scheduler

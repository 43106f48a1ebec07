#include "kube/scheduler/pod.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/instant.h"
#include "base/shorten.h"
#include "kube/client/object.h"
#include "kube/gpu_topology.h"
#include "kube/scheduler/gpu_request.h"

namespace drover::kube::scheduler {
namespace {

using nlohmann::json;

// Volumes that need nothing of the node but its kubelet. A driver that serves `csi` volumes in the pod itself
// is counted by nobody.
constexpr std::array<std::string_view, 9> kPlainVolumes{
    "emptyDir", "configMap", "secret", "downwardAPI", "projected", "hostPath", "nfs", "image", "csi"};

constexpr std::int64_t kLongest = 1LL << 32;  // in seconds

std::vector<std::string> chosen_gpus(const Labels& annotations) {
  std::vector<std::string> uuids;
  const auto* const text = label(annotations, kChosenGpusAnnotation);
  if (text == nullptr || text->empty()) return uuids;
  std::size_t begin = 0;
  for (auto end = text->find(','); begin <= text->size(); end = text->find(',', begin)) {
    uuids.push_back(text->substr(begin, end - begin));
    if (end == std::string::npos) break;
    begin = end + 1;
  }
  return uuids;
}

class PodReader {
 public:
  PodReader(const json& pod, const ServerVersion& version)
      : version_(version),
        pod_(pod),
        metadata_(reader_.object(pod, "metadata")),
        spec_(reader_.object(pod, "spec")) {}

  Result<Pod> read() {
    Pod pod;
    pod.uid = reader_.text(metadata_, "uid");
    pod.name_space = reader_.text(metadata_, "namespace");
    pod.name = reader_.text(metadata_, "name");
    if (pod.uid.empty() || pod.name.empty() || pod.name_space.empty())
      reader_.mistake("it has no uid, no name, or no namespace");
    for (const auto& owner : reader_.objects(metadata_, "ownerReferences"))
      if (reader_.flag(owner, "controller")) pod.owner_uid = reader_.text(owner, "uid");
    pod.node_name = reader_.text(spec_, "nodeName");
    const auto phase = reader_.text(reader_.object(pod_, "status"), "phase");
    pod.ended = phase == "Succeeded" || phase == "Failed";
    pod.terminating = !reader_.text(metadata_, "deletionTimestamp").empty();
    pod.created = time(metadata_, "creationTimestamp");
    pod.started = time(reader_.object(pod_, "status"), "startTime");
    pod.bound = bound_at();
    if (const auto seconds = reader_.number(spec_, "activeDeadlineSeconds"))
      pod.time_limit = std::chrono::seconds(std::clamp<std::int64_t>(*seconds, 0, kLongest));
    const auto annotations = reader_.text_map(metadata_, "annotations");
    pod.gpus = chosen_gpus(annotations);
    read_release(pod.release, annotations);
    read_claims(pod);
    auto labels = reader_.text_map(metadata_, "labels");
    auto made_from = read_template(pod.name_space, labels, !pod.node_name.empty());
    if (const auto* const request = label(annotations, kGpuRequestAnnotation))
      made_from.gpu_request = *request;
    DROVER_CHECK_OK(reader_.status(fmt::format("the pod '{}'", shortened(key_of(pod_)))));
    pod.labels = std::make_shared<const Labels>(std::move(labels));
    pod.made_from = std::make_shared<const PodTemplate>(std::move(made_from));
    return pod;
  }

 private:
  void read_claims(Pod& pod) {
    const auto& made = reader_.objects(reader_.object(pod_, "status"), "resourceClaimStatuses");
    for (const auto& entry : reader_.objects(spec_, "resourceClaims")) {
      ClaimReference claim{reader_.text(entry, "name"), reader_.text(entry, "resourceClaimName")};
      claim.from_template = claim.claim.empty();
      for (const auto& status : made)
        if (claim.from_template && reader_.text(status, "name") == claim.entry) {
          claim.claim = reader_.text(status, "resourceClaimName");
          claim.needed = !claim.claim.empty();
        }
      pod.claims.push_back(std::move(claim));
    }
  }

  TimePoint bound_at() {
    for (const auto& condition : reader_.objects(reader_.object(pod_, "status"), "conditions"))
      if (reader_.text(condition, "type") == "PodScheduled" && reader_.text(condition, "status") == "True")
        return time(condition, "lastTransitionTime");
    return {};
  }

  void read_release(Release& release, const Labels& annotations) {
    for (const auto& gate : reader_.objects(spec_, "schedulingGates"))
      release.gated = release.gated || reader_.text(gate, "name") == kQueueGate;
    if (const auto* const at = label(annotations, kReleasedAnnotation))
      release.at = parse_instant(*at).value_or(TimePoint{});
    if (const auto* const node = label(annotations, kExpectedNodeAnnotation)) release.expected_node = *node;
  }

  TimePoint time(const json& object, const char* name) {
    return parse_instant(reader_.text(object, name)).value_or(TimePoint{});
  }

  PodTemplate read_template(const std::string& name_space, const Labels& labels, bool assigned) {
    PodTemplate made;
    made.scheduler_name = reader_.text(spec_, "schedulerName");
    made.priority = reader_.number(spec_, "priority").value_or(0);
    made.preempts = reader_.text(spec_, "preemptionPolicy") != "Never";
    for (const auto& gate : reader_.objects(spec_, "schedulingGates"))
      made.scheduling_gates.push_back(reader_.text(gate, "name"));
    made.operating_system = reader_.text(reader_.object(spec_, "os"), "name");
    made.requests = read_requests(reader_, pod_, assigned ? &version_ : nullptr);
    if (!made.requests.others.empty()) made.containers = read_container_resources(reader_, pod_);
    read_containers(made);
    for (const auto& toleration : reader_.objects(spec_, "tolerations"))
      made.tolerations.push_back(read_toleration(toleration));
    made.node_selector = reader_.text_map(spec_, "nodeSelector");
    read_affinity(made, name_space);
    for (const auto& constraint : reader_.objects(spec_, "topologySpreadConstraints"))
      if (reader_.text(constraint, "whenUnsatisfiable") == "DoNotSchedule")
        read_spread(made, constraint, labels);
    for (const auto& volume : reader_.objects(spec_, "volumes")) read_volume(made, volume);
    for (const auto& claim : reader_.objects(spec_, "resourceClaims"))
      made.resource_claims.push_back(reader_.text(claim, "name"));
    made.unsupported = std::move(unsupported_);
    std::ranges::sort(made.unsupported);
    const auto same = std::ranges::unique(made.unsupported);
    made.unsupported.erase(same.begin(), same.end());
    return made;
  }

  Toleration read_toleration(const json& given) {
    Toleration toleration{reader_.text(given, "key"), reader_.text(given, "operator"),
                          reader_.text(given, "value"), reader_.text(given, "effect")};
    if (toleration.operation.empty()) toleration.operation = "Equal";
    return toleration;
  }

  void read_containers(PodTemplate& made) {
    bool restarts_all = false;
    bool binds_with_options = false;
    for (const auto* const list : {"initContainers", "containers"}) {
      for (const auto& container : reader_.objects(spec_, list)) {
        for (const auto& rule : reader_.objects(container, "restartPolicyRules"))
          restarts_all = restarts_all || reader_.text(rule, "action") == "RestartAllContainers";
        for (const auto& mount : reader_.objects(container, "volumeMounts"))
          binds_with_options = binds_with_options || !reader_.texts(mount, "bindMountOptions").empty();
        const auto runs_on =
            list == std::string_view("containers") || reader_.text(container, "restartPolicy") == "Always";
        for (const auto& port : reader_.objects(container, "ports"))
          if (runs_on) read_port(made, port);
      }
    }
    if (restarts_all) made.node_features.emplace_back("RestartAllContainersOnContainerExits");
    if (binds_with_options) made.node_features.emplace_back("VolumeBindMountOptions");
    if (reader_.flag(spec_, "hostNetwork") && reader_.field(spec_, "hostUsers") == false)
      made.node_features.emplace_back("UserNamespacesHostNetworkSupport");
  }

  void read_port(PodTemplate& made, const json& given) {
    HostPort port;
    port.port = reader_.number(given, "hostPort").value_or(0);
    if (port.port <= 0) return;
    if (auto protocol = reader_.text(given, "protocol"); !protocol.empty())
      port.protocol = std::move(protocol);
    if (auto address = reader_.text(given, "hostIP"); !address.empty()) port.address = std::move(address);
    made.ports.push_back(std::move(port));
  }

  void read_affinity(PodTemplate& made, const std::string& name_space) {
    constexpr auto* kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
    const auto& affinity = reader_.object(spec_, "affinity");
    made.node_terms =
        read_node_terms(reader_, reader_.object(reader_.object(affinity, "nodeAffinity"), kRequired));
    for (const auto& term : reader_.objects(reader_.object(affinity, "podAffinity"), kRequired))
      made.affinity.push_back(read_term(term, name_space));
    for (const auto& term : reader_.objects(reader_.object(affinity, "podAntiAffinity"), kRequired))
      made.anti_affinity.push_back(read_term(term, name_space));
  }

  PodTerm read_term(const json& given, const std::string& name_space) {
    PodTerm term;
    term.topology_key = reader_.text(given, "topologyKey");
    for (auto& name : reader_.texts(given, "namespaces")) term.namespaces.insert(std::move(name));
    const auto& by_labels = reader_.object(given, "namespaceSelector");
    if (term.namespaces.empty() && by_labels.is_null()) term.namespaces.insert(name_space);
    term.namespace_selector = selector(by_labels);
    term.selector = selector(reader_.object(given, "labelSelector"));
    return term;
  }

  Selector selector(const json& given) {
    auto read = read_selector(reader_, given);
    if (read) return *read;
    unsupported_.emplace_back("has a selector of pods or namespaces that is not valid");
    return {};
  }

  void read_spread(PodTemplate& made, const json& given, const Labels& labels) {
    SpreadConstraint constraint;
    constraint.topology_key = reader_.text(given, "topologyKey");
    constraint.most_skew = reader_.number(given, "maxSkew").value_or(0);
    constraint.least_domains = reader_.number(given, "minDomains").value_or(1);
    constraint.selector = selector(reader_.object(given, "labelSelector"));
    std::set<std::string> seen;
    for (const auto& key : reader_.texts(given, "matchLabelKeys"))
      if (const auto* const value = label(labels, key);
          value != nullptr && !constraint.selector.nothing && seen.insert(key).second)
        constraint.selector.requirements.push_back({key, LabelOperator::kIn, {*value}});
    const auto affinity_policy = reader_.text(given, "nodeAffinityPolicy");
    constraint.by_node_affinity = affinity_policy.empty() || affinity_policy == "Honor";
    constraint.by_taints = reader_.text(given, "nodeTaintsPolicy") == "Honor";
    made.spread.push_back(std::move(constraint));
  }

  void read_volume(PodTemplate& made, const json& volume) {
    for (const auto& [kind, source] : volume.items()) {
      if (kind == "name" || source.is_null()) continue;
      if (kind == "persistentVolumeClaim")
        made.volume_claims.push_back(
            reader_.text(reader_.object(volume, "persistentVolumeClaim"), "claimName"));
      else if (std::ranges::find(kPlainVolumes, kind) == kPlainVolumes.end())
        unsupported_.push_back(fmt::format("uses volumes of the kind '{}'", shortened(kind)));
    }
  }

  FieldReader reader_;
  const ServerVersion& version_;
  const json& pod_;
  const json& metadata_;
  const json& spec_;
  std::vector<std::string> unsupported_;
};

}  // namespace

Result<Pod> read_pod(const json& pod, const ServerVersion& version) {
  return PodReader(pod, version).read();
}

}  // namespace drover::kube::scheduler

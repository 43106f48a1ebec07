#include "kube/scheduling/cluster_kinds.h"

#include <fmt/format.h>

#include <array>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <utility>

#include "kube/gpu_topology.h"
#include "kube/scheduler/node.h"
#include "kube/scheduler/volumes.h"
#include "kube/scheduling/claim_writer.h"
#include "kube/scheduling/volume_writer.h"

namespace drover::kube {
namespace {

using nlohmann::json;
using scheduler::Cluster;
using scheduler::Scheduler;

const Resource kNamespaces{"", "v1", "namespaces"};
const Resource kStorageClasses{"storage.k8s.io", "v1", "storageclasses"};
const Resource kCsiDrivers{"storage.k8s.io", "v1", "csidrivers"};
const Resource kStorageCapacities{"storage.k8s.io", "v1", "csistoragecapacities"};
const Resource kCsiNodes{"storage.k8s.io", "v1", "csinodes"};
const Resource kBudgets{"policy", "v1", "poddisruptionbudgets"};
const Resource kDeviceClasses{"resource.k8s.io", "v1", "deviceclasses"};
const Resource kResourceSlices{"resource.k8s.io", "v1", "resourceslices"};
const Resource kTaintRules{"resource.k8s.io", "v1", "devicetaintrules"};
/// Objects that say how large a gang is, and may change. In the newest version that is served.
const std::array kPodGroups{Resource{"scheduling.k8s.io", "v1beta1", "podgroups"},
                            Resource{"scheduling.k8s.io", "v1alpha2", "podgroups"},
                            Resource{"scheduling.x-k8s.io", "v1alpha1", "podgroups"},
                            Resource{"scheduling.volcano.sh", "v1beta1", "podgroups"},
                            Resource{"scheduling.run.ai", "v2alpha2", "podgroups"}};

std::string name_of(const json& object) {
  return text_at(object, "/metadata/name");
}
std::string namespace_of(const json& object) {
  return text_at(object, "/metadata/namespace");
}

/// A change of what is put into the cluster beside nodes, pods and namespaces.
template <typename Apply>
SchedulerChange in_cluster(Apply apply) {
  return [apply = std::move(apply)](Scheduler& scheduler) { scheduler.change_cluster(apply); };
}

/// What stands in the cluster as it was read. `remove` wants its name, after its namespace where it has one.
template <typename Read, typename Put, typename Remove>
ClusterKind kept_in_cluster(const Resource& resource, Read read, Put put, Remove remove) {
  return {resource, true, [=](const json& object) -> Result<ObjectChange> {
            DROVER_TRY(auto value, read(object));
            return ObjectChange{
                in_cluster([value = std::move(value), put](Cluster& to) { std::invoke(put, to, value); }),
                in_cluster([space = namespace_of(object), name = name_of(object), remove](Cluster& to) {
                  if constexpr (std::is_invocable_v<Remove, Cluster&, std::string, std::string>)
                    std::invoke(remove, to, space, name);
                  else
                    std::invoke(remove, to, name);
                })};
          }};
}

/// nullopt for a node whose GPUs are only counted.
Result<std::optional<gpu::Inventory>> gpus_of(const json& node) {
  const auto& annotations = node.at("metadata").value("annotations", json::object());
  const auto text = annotations.find(kTopologyAnnotation);
  if (text == annotations.end() || !text->is_string()) return std::nullopt;
  DROVER_TRY(auto gpus, read_topology(text->get_ref<const std::string&>()));
  return gpus;
}

Result<scheduler::Labels> labels_of(const json& object) {
  scheduler::FieldReader reader;
  auto labels = reader.text_map(reader.object(object, "metadata"), "labels");
  DROVER_CHECK_OK(reader.status("the namespace"));
  return labels;
}

ClusterKind nodes_kind(std::function<void(const std::string&)> warn) {
  return {
      kNodes, true, [warn = std::move(warn)](const json& object) -> Result<ObjectChange> {
        DROVER_TRY(auto node, scheduler::read_node(object));
        auto gpus = gpus_of(object);
        if (!gpus)
          warn(fmt::format("GPUs of the node {} are only counted: {}", node.name, to_string(gpus.error())));
        auto known = gpus ? std::move(*gpus) : std::nullopt;
        return ObjectChange{[node, known = std::move(known)](Scheduler& to) { to.put_node(node, known); },
                            [name = node.name](Scheduler& to) { to.remove_node(name); }};
      }};
}

ClusterKind pods_kind(const ServerVersion& version) {
  return {kPods, true, [version](const json& object) -> Result<ObjectChange> {
            DROVER_TRY(auto pod, scheduler::read_pod_object(object, version));
            auto uid = pod.pod.uid;
            return ObjectChange{[pod = std::move(pod)](Scheduler& to) { to.put_pod(pod); },
                                [uid = std::move(uid)](Scheduler& to) { to.remove_pod(uid); }};
          }};
}

ClusterKind namespaces_kind() {
  return {kNamespaces, true, [](const json& object) -> Result<ObjectChange> {
            DROVER_TRY(auto labels, labels_of(object));
            return ObjectChange{[name = name_of(object), labels = std::move(labels),
                                 queues = scheduler::read_queue_names(object)](Scheduler& to) {
                                  to.put_namespace(name, labels, queues);
                                },
                                [name = name_of(object)](Scheduler& to) { to.remove_namespace(name); }};
          }};
}

ClusterKind budgets_kind() {
  return {kBudgets, true, [](const json& object) -> Result<ObjectChange> {
            DROVER_TRY(auto budget, scheduler::read_pod_budget(object));
            return ObjectChange{
                [budget = std::move(budget)](Scheduler& to) { to.budgets().put_budget(budget); },
                [space = namespace_of(object), name = name_of(object)](Scheduler& to) {
                  to.budgets().remove_budget(space, name);
                }};
          }};
}

ClusterKind device_classes_kind() {
  return {kDeviceClasses, false, [](const json& object) -> Result<ObjectChange> {
            DROVER_TRY(auto device_class, scheduler::read_device_class(object));
            return ObjectChange{[device_class](Scheduler& to) { to.put_device_class(device_class); },
                                [name = device_class.name](Scheduler& to) { to.remove_device_class(name); }};
          }};
}

ClusterKind slices_kind() {
  return {kResourceSlices, false, [](const json& object) -> Result<ObjectChange> {
            DROVER_TRY(auto slice, scheduler::read_resource_slice(object));
            auto name = slice.name;
            return ObjectChange{[slice = std::move(slice)](Scheduler& to) { to.put_slice(slice); },
                                [name = std::move(name)](Scheduler& to) { to.remove_slice(name); }};
          }};
}

ClusterKind taint_rules_kind() {
  return {kTaintRules, false, [](const json& object) -> Result<ObjectChange> {
            DROVER_TRY(auto rule, scheduler::read_device_taint_rule(object));
            return ObjectChange{[rule](Scheduler& to) { to.put_taint_rule(rule); },
                                [name = rule.name](Scheduler& to) { to.remove_taint_rule(name); }};
          }};
}

ClusterKind claims_kind() {
  return {kResourceClaims, false, [](const json& object) -> Result<ObjectChange> {
            DROVER_TRY(auto claim, scheduler::read_resource_claim(object));
            auto uid = claim.uid;
            return ObjectChange{[claim = std::move(claim)](Scheduler& to) { to.put_claim(claim); },
                                [uid = std::move(uid)](Scheduler& to) { to.remove_claim(uid); }};
          }};
}

ClusterKind groups_kind(const Resource& resource) {
  return {resource, false, [resource](const json& object) -> Result<ObjectChange> {
            return ObjectChange{put_group(resource, object),
                                [resource, space = namespace_of(object), name = name_of(object)](
                                    Scheduler& to) { to.gangs().remove_object(resource, space, name); }};
          }};
}

}  // namespace

std::vector<ClusterKind> cluster_kinds(const ServerVersion& version,
                                       std::function<void(const std::string&)> warn) {
  std::vector<ClusterKind> kinds{nodes_kind(std::move(warn)), pods_kind(version), namespaces_kind()};
  const auto keep = [&](const Resource& resource, auto read, auto put, auto remove) {
    kinds.push_back(kept_in_cluster(resource, read, put, remove));
  };
  keep(kVolumeClaims, scheduler::read_volume_claim, &Cluster::put_volume_claim,
       &Cluster::remove_volume_claim);
  keep(kVolumes, scheduler::read_volume, &Cluster::put_volume, &Cluster::remove_volume);
  keep(kStorageClasses, scheduler::read_storage_class, &Cluster::put_storage_class,
       &Cluster::remove_storage_class);
  keep(kStorageCapacities, scheduler::read_storage_capacity, &Cluster::put_storage_capacity,
       &Cluster::remove_storage_capacity);
  keep(kCsiDrivers, scheduler::read_csi_driver, &Cluster::put_csi_driver, &Cluster::remove_csi_driver);
  keep(kCsiNodes, scheduler::read_csi_node, &Cluster::put_csi_drivers,
       [](Cluster& to, const std::string& name) { to.put_csi_drivers({.node_name = name, .limited = {}}); });
  for (auto kind : {budgets_kind(), device_classes_kind(), slices_kind(), taint_rules_kind(), claims_kind()})
    kinds.push_back(std::move(kind));
  for (const auto& resource : kPodGroups) kinds.push_back(groups_kind(resource));
  return kinds;
}

SchedulerChange put_sharing(const SharingObjects& objects) {
  std::vector<Object> queues, quotas;
  for (const auto& [unused, object] : objects.queues) queues.push_back(object);
  for (const auto& [unused, object] : objects.quotas) quotas.push_back(object);
  return [sharing = scheduler::read_sharing(queues, quotas)](Scheduler& to) { to.set_sharing(sharing); };
}

SchedulerChange put_group(const Resource& resource, const json& object) {
  return [resource, space = namespace_of(object), name = name_of(object),
          group = scheduler::read_gang_group(resource, object)](Scheduler& to) {
    to.gangs().put_object(resource, space, name, group);
  };
}

}  // namespace drover::kube

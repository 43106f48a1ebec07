#include "kube/scheduling/cluster_watch.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "kube/gpu_topology.h"
#include "kube/scheduler/node.h"
#include "kube/scheduler/pod.h"
#include "kube/scheduler/volumes.h"

namespace drover::kube {
namespace {

using nlohmann::json;
using scheduler::Scheduler;
using SchedulerChange = SchedulingLoop::Change;

const Resource kNamespaces{"", "v1", "namespaces"};
const Resource kVolumeClaims{"", "v1", "persistentvolumeclaims"};
const Resource kVolumes{"", "v1", "persistentvolumes"};
const Resource kDeviceClasses{"resource.k8s.io", "v1", "deviceclasses"};
const Resource kCsiNodes{"storage.k8s.io", "v1", "csinodes"};

std::string name_of(const json& object) {
  return text_at(object, "/metadata/name");
}

/// Of a node whose annotation cannot be read GPUs are only counted.
Result<SchedulerChange> node_change(const json& object, const std::function<void(const std::string&)>& warn) {
  DROVER_TRY(auto node, scheduler::read_node(object));
  std::optional<gpu::Inventory> gpus;
  const auto& annotations = object.at("metadata").value("annotations", json::object());
  if (const auto text = annotations.find(kTopologyAnnotation);
      text != annotations.end() && text->is_string()) {
    auto read = read_topology(text->get_ref<const std::string&>());
    if (read)
      gpus = std::move(*read);
    else if (warn)
      warn(fmt::format("The GPUs of node {} are only counted: {}", node.name, to_string(read.error())));
  }
  return [node = std::move(node), gpus = std::move(gpus)](Scheduler& scheduler) {
    scheduler.put_node(node, gpus);
  };
}

/// A change of what is put into the cluster beside nodes and pods.
template <typename Apply>
SchedulerChange in_cluster(Apply apply) {
  return [apply = std::move(apply)](Scheduler& scheduler) { scheduler.change_cluster(apply); };
}

}  // namespace

ClusterWatch::ClusterWatch(Api& api, SchedulingLoop& loop, const ServerVersion& version,
                           std::function<void(const std::string&)> warn)
    : api_(api), loop_(loop), warn_(std::move(warn)) {
  using scheduler::Cluster;
  follow(
      kNodes, [this](const json& object) { return node_change(object, warn_); },
      [](const json& object) -> SchedulerChange {
        return [name = name_of(object)](Scheduler& scheduler) { scheduler.remove_node(name); };
      });
  follow(
      kPods,
      [version](const json& object) -> Result<SchedulerChange> {
        DROVER_TRY(auto pod, scheduler::read_pod(object, version));
        return SchedulerChange([pod = std::move(pod)](Scheduler& scheduler) { scheduler.put_pod(pod); });
      },
      [](const json& object) -> SchedulerChange {
        return [uid = text_at(object, "/metadata/uid")](Scheduler& scheduler) { scheduler.remove_pod(uid); };
      });
  follow(
      kNamespaces,
      [](const json& object) -> Result<SchedulerChange> {
        scheduler::FieldReader reader;
        auto labels = reader.text_map(reader.object(object, "metadata"), "labels");
        DROVER_CHECK_OK(reader.status("the namespace"));
        return in_cluster([name = name_of(object), labels = std::move(labels)](Cluster& cluster) {
          cluster.put_namespace(name, labels);
        });
      },
      [](const json& object) {
        return in_cluster([name = name_of(object)](Cluster& cluster) { cluster.remove_namespace(name); });
      });
  follow(
      kVolumeClaims,
      [](const json& object) -> Result<SchedulerChange> {
        DROVER_TRY(auto claim, scheduler::read_volume_claim(object));
        return in_cluster([claim = std::move(claim)](Cluster& cluster) { cluster.put_volume_claim(claim); });
      },
      [](const json& object) {
        return in_cluster([space = text_at(object, "/metadata/namespace"), name = name_of(object)](
                              Cluster& cluster) { cluster.remove_volume_claim(space, name); });
      });
  follow(
      kVolumes,
      [](const json& object) -> Result<SchedulerChange> {
        DROVER_TRY(auto volume, scheduler::read_volume(object));
        return in_cluster([volume = std::move(volume)](Cluster& cluster) { cluster.put_volume(volume); });
      },
      [](const json& object) {
        return in_cluster([name = name_of(object)](Cluster& cluster) { cluster.remove_volume(name); });
      });
  follow(
      kCsiNodes,
      [](const json& object) -> Result<SchedulerChange> {
        DROVER_TRY(auto drivers, scheduler::read_csi_node(object));
        return in_cluster(
            [drivers = std::move(drivers)](Cluster& cluster) { cluster.put_csi_drivers(drivers); });
      },
      [](const json& object) {
        return in_cluster([name = name_of(object)](Cluster& cluster) {
          cluster.put_csi_drivers({.node_name = name, .limited = {}});
        });
      });
  follow(
      kDeviceClasses,
      [](const json& object) -> Result<SchedulerChange> {
        scheduler::FieldReader reader;
        auto resource = reader.text(reader.object(object, "spec"), "extendedResourceName");
        DROVER_CHECK_OK(reader.status("the class of devices"));
        return in_cluster([name = name_of(object), resource = std::move(resource)](Cluster& cluster) {
          cluster.put_device_class(name, resource);
        });
      },
      [](const json& object) {
        return in_cluster([name = name_of(object)](Cluster& cluster) { cluster.remove_device_class(name); });
      });
}

void ClusterWatch::follow(const Resource& resource, Read read, Remove remove) {
  InformerOptions options;
  options.selection.resource = resource;
  options.on_change = [this, read = std::move(read), remove = std::move(remove)](const kube::Change& change) {
    const auto uid = [](const Object& object) { return object ? text_at(*object, "/metadata/uid") : ""; };
    if (change.before && uid(change.before) != uid(change.now)) loop_.change(remove(*change.before));
    if (!change.now) return;
    auto made = read(*change.now);
    if (made)
      loop_.change(std::move(*made));
    else if (warn_)
      warn_(to_string(made.error()));
  };
  options.on_trouble = [this](const Error& error) {
    if (warn_) warn_(to_string(error));
  };
  informers_.push_back(std::make_unique<Informer>(api_, std::move(options)));
}

Status ClusterWatch::wait_until_listed(std::chrono::milliseconds patience) const {
  const auto end = std::chrono::steady_clock::now() + patience;
  for (const auto& informer : informers_) {
    const auto left = end - std::chrono::steady_clock::now();
    DROVER_CHECK_OK(informer->wait_until_listed(std::chrono::duration_cast<std::chrono::milliseconds>(
        std::max(left, std::chrono::steady_clock::duration::zero()))));
  }
  return {};
}

}  // namespace drover::kube

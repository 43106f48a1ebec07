#include "kube/scheduling/cluster_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <future>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/pause.h"
#include "kube/gpu_topology.h"
#include "kube/scheduler/node.h"
#include "kube/scheduler/volumes.h"
#include "kube/scheduling/claim_writer.h"
#include "kube/scheduling/volume_writer.h"

namespace drover::kube {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using scheduler::Cluster;
using scheduler::Scheduler;
using SchedulerChange = SchedulingLoop::Change;

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

constexpr auto kLongestPause = 2s;  ///< a server that is back is noticed so soon
constexpr auto kLookForApis = 30s;
constexpr auto kLookForGroups = 500ms;
constexpr auto kBetweenUses = 2s;
constexpr auto kAskAgain = 10s;
constexpr auto kAnswer = 5s;  ///< of the scheduler's own thread

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

SchedulerChange put_group(const Resource& resource, const std::string& name_space, const std::string& name,
                          Result<scheduler::GangGroup> group) {
  return [=](Scheduler& scheduler) { scheduler.gangs().put_object(resource, name_space, name, group); };
}

}  // namespace

ClusterWatch::ClusterWatch(Api& api, SchedulingLoop& loop, const ServerVersion& version,
                           std::function<void(const std::string&)> warn)
    : api_(api), loop_(loop), version_(version), warn_(std::move(warn)) {
  follow_nodes_and_pods();
  follow_volumes();
  follow_storage();
  follow_budgets();
  not_served_.assign(kPodGroups.begin(), kPodGroups.end());
  for (const auto& resource : {kDeviceClasses, kResourceSlices, kTaintRules, kResourceClaims,
                               scheduler::kQueues, scheduler::kQuotas})
    not_served_.push_back(resource);
  follow_if_served();
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

Status ClusterWatch::wait_until_listed(std::chrono::milliseconds patience) const {
  const auto end = std::chrono::steady_clock::now() + patience;
  const auto left = [&] {
    return std::max(0ms,
                    std::chrono::floor<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()));
  };
  const std::lock_guard lock(mutex_);
  for (const auto& informer : informers_) DROVER_CHECK_OK(informer->wait_until_listed(left()));
  for (const auto& informer : sharing_informers_) DROVER_CHECK_OK(informer->wait_until_listed(left()));
  return {};
}

void ClusterWatch::follow(const Resource& resource, Read read) {
  InformerOptions<Told> options;
  options.selection.resource = resource;
  options.read = std::move(read);
  options.on_change = [this](const Change<Told>& change) {
    loop_.change(change.now ? std::exchange(change.now->put, {}) : change.before->end);
  };
  options.longest_pause = kLongestPause;
  options.on_trouble = [this](const Error& error) { warn_(to_string(error)); };
  const std::lock_guard lock(mutex_);
  informers_.push_back(std::make_unique<Informer<Told>>(api_, std::move(options)));
}

void ClusterWatch::follow_nodes_and_pods() {
  follow(kNodes, [this](const json& object) -> Result<Told> {
    DROVER_TRY(auto node, scheduler::read_node(object));
    auto gpus = gpus_of(object);
    if (!gpus)
      warn_(fmt::format("GPUs of the node {} are only counted: {}", node.name, to_string(gpus.error())));
    auto known = gpus ? std::move(*gpus) : std::nullopt;
    return Told{[node, known = std::move(known)](Scheduler& to) { to.put_node(node, known); },
                [name = node.name](Scheduler& to) { to.remove_node(name); }};
  });
  follow(kPods, [this](const json& object) -> Result<Told> {
    DROVER_TRY(auto pod, scheduler::read_pod_object(object, version_));
    auto uid = pod.pod.uid;
    return Told{[pod = std::move(pod)](Scheduler& to) { to.put_pod(pod); },
                [uid = std::move(uid)](Scheduler& to) { to.remove_pod(uid); }};
  });
  follow(kNamespaces, [](const json& object) -> Result<Told> {
    DROVER_TRY(auto labels, labels_of(object));
    return Told{
        [name = name_of(object), labels = std::move(labels), queues = scheduler::read_queue_names(object)](
            Scheduler& to) { to.put_namespace(name, labels, queues); },
        [name = name_of(object)](Scheduler& to) { to.remove_namespace(name); }};
  });
}

void ClusterWatch::follow_volumes() {
  follow(kVolumeClaims, [](const json& object) -> Result<Told> {
    DROVER_TRY(auto claim, scheduler::read_volume_claim(object));
    return Told{in_cluster([claim = std::move(claim)](Cluster& to) { to.put_volume_claim(claim); }),
                in_cluster([space = namespace_of(object), name = name_of(object)](Cluster& to) {
                  to.remove_volume_claim(space, name);
                })};
  });
  follow(kVolumes, [](const json& object) -> Result<Told> {
    DROVER_TRY(auto volume, scheduler::read_volume(object));
    return Told{in_cluster([volume = std::move(volume)](Cluster& to) { to.put_volume(volume); }),
                in_cluster([name = name_of(object)](Cluster& to) { to.remove_volume(name); })};
  });
  follow(kCsiNodes, [](const json& object) -> Result<Told> {
    DROVER_TRY(auto drivers, scheduler::read_csi_node(object));
    return Told{in_cluster([drivers = std::move(drivers)](Cluster& to) { to.put_csi_drivers(drivers); }),
                in_cluster([name = name_of(object)](Cluster& to) {
                  to.put_csi_drivers({.node_name = name, .limited = {}});
                })};
  });
}

void ClusterWatch::follow_storage() {
  follow(kStorageClasses, [](const json& object) -> Result<Told> {
    DROVER_TRY(auto read, scheduler::read_storage_class(object));
    return Told{in_cluster([read = std::move(read)](Cluster& to) { to.put_storage_class(read); }),
                in_cluster([name = name_of(object)](Cluster& to) { to.remove_storage_class(name); })};
  });
  follow(kCsiDrivers, [](const json& object) -> Result<Told> {
    DROVER_TRY(auto driver, scheduler::read_csi_driver(object));
    return Told{in_cluster([driver = std::move(driver)](Cluster& to) { to.put_csi_driver(driver); }),
                in_cluster([name = name_of(object)](Cluster& to) { to.remove_csi_driver(name); })};
  });
  follow(kStorageCapacities, [](const json& object) -> Result<Told> {
    DROVER_TRY(auto capacity, scheduler::read_storage_capacity(object));
    return Told{
        in_cluster([capacity = std::move(capacity)](Cluster& to) { to.put_storage_capacity(capacity); }),
        in_cluster([space = namespace_of(object), name = name_of(object)](Cluster& to) {
          to.remove_storage_capacity(space, name);
        })};
  });
}

void ClusterWatch::follow_budgets() {
  follow(kBudgets, [](const json& object) -> Result<Told> {
    DROVER_TRY(auto budget, scheduler::read_pod_budget(object));
    return Told{[budget = std::move(budget)](Scheduler& to) { to.budgets().put_budget(budget); },
                [space = namespace_of(object), name = name_of(object)](Scheduler& to) {
                  to.budgets().remove_budget(space, name);
                }};
  });
}

void ClusterWatch::follow_devices(const Resource& resource) {
  if (resource == kDeviceClasses)
    return follow(resource, [](const json& object) -> Result<Told> {
      DROVER_TRY(auto device_class, scheduler::read_device_class(object));
      return Told{[device_class](Scheduler& to) { to.put_device_class(device_class); },
                  [name = device_class.name](Scheduler& to) { to.remove_device_class(name); }};
    });
  if (resource == kResourceSlices)
    return follow(resource, [](const json& object) -> Result<Told> {
      DROVER_TRY(auto slice, scheduler::read_resource_slice(object));
      auto name = slice.name;
      return Told{[slice = std::move(slice)](Scheduler& to) { to.put_slice(slice); },
                  [name = std::move(name)](Scheduler& to) { to.remove_slice(name); }};
    });
  if (resource == kTaintRules)
    return follow(resource, [](const json& object) -> Result<Told> {
      DROVER_TRY(auto rule, scheduler::read_device_taint_rule(object));
      return Told{[rule](Scheduler& to) { to.put_taint_rule(rule); },
                  [name = rule.name](Scheduler& to) { to.remove_taint_rule(name); }};
    });
  follow(resource, [](const json& object) -> Result<Told> {
    DROVER_TRY(auto claim, scheduler::read_resource_claim(object));
    auto uid = claim.uid;
    return Told{[claim = std::move(claim)](Scheduler& to) { to.put_claim(claim); },
                [uid = std::move(uid)](Scheduler& to) { to.remove_claim(uid); }};
  });
}

/// Where a mistake in one object is no reason to do without the others, all are looked at together.
void ClusterWatch::follow_sharing(const Resource& resource, std::map<std::string, Object>& objects) {
  InformerOptions<> options;
  options.selection.resource = resource;
  options.on_change = [this, &objects](const Change<>& change) {
    const std::lock_guard lock(sharing_mutex_);
    const auto name = name_of(change.now ? *change.now : *change.before);
    if (change.now)
      objects.insert_or_assign(name, change.now);
    else
      objects.erase(name);
    std::vector<Object> queues, quotas;
    for (const auto& [unused, object] : queues_) queues.push_back(object);
    for (const auto& [unused, object] : quotas_) quotas.push_back(object);
    loop_.change(
        [sharing = scheduler::read_sharing(queues, quotas)](Scheduler& to) { to.set_sharing(sharing); });
  };
  options.longest_pause = kLongestPause;
  options.on_trouble = [this](const Error& error) { warn_(to_string(error)); };
  const std::lock_guard lock(mutex_);
  sharing_informers_.push_back(std::make_unique<Informer<>>(api_, std::move(options)));
}

void ClusterWatch::follow_if_served() {
  std::erase_if(not_served_, [this](const Resource& resource) {
    if (!is_served(api_, resource).value_or(false)) return false;
    if (resource.group == kDeviceClasses.group) {
      follow_devices(resource);
    } else if (resource == scheduler::kQueues || resource == scheduler::kQuotas) {
      follow_sharing(resource, resource == scheduler::kQueues ? queues_ : quotas_);
    } else {
      follow(resource, [resource](const json& object) -> Result<Told> {
        return Told{put_group(resource, namespace_of(object), name_of(object),
                              scheduler::read_gang_group(resource, object)),
                    [resource, space = namespace_of(object), name = name_of(object)](Scheduler& to) {
                      to.gangs().remove_object(resource, space, name);
                    }};
      });
    }
    return true;
  });
}

/// Objects that are seldom asked for are read one by one.
void ClusterWatch::read_absent_groups() {
  const auto found = std::make_shared<std::promise<std::vector<ObjectPath>>>();
  auto answer = found->get_future();
  loop_.change([found](Scheduler& scheduler) { found->set_value(scheduler.absent_groups()); });
  if (answer.wait_for(kAnswer) != std::future_status::ready) return;
  const auto now = std::chrono::steady_clock::now();
  std::erase_if(asked_, [&](const auto& asked) { return now - asked.second > kAskAgain; });
  for (const auto& path : answer.get()) {
    if (!asked_.try_emplace(url_path(path), now).second) continue;
    const auto object = api_.get(path);
    if (object)
      loop_.change(put_group(path.resource, path.name_space, path.name,
                             scheduler::read_gang_group(path.resource, *object)));
    else if (object.error().kind != ErrorKind::kNotFound)
      groups_trouble_.report(Failure(object.error()));
  }
}

/// What queues and quotas hold, where people look for it.
void ClusterWatch::write_use() {
  const auto use = loop_.use();
  if (!use) return;
  std::map<std::string, Object> queues, quotas;
  {
    const std::lock_guard lock(sharing_mutex_);
    queues = queues_;
    quotas = quotas_;
  }
  const auto of = [](const auto& uses, const std::string& name) {
    const auto found = uses.find(name);
    return found == uses.end() ? scheduler::SharingUse{} : found->second;
  };
  std::optional<Error> trouble;
  const auto write = [&](const Resource& resource, const std::string& name,
                         const std::optional<json>& patch) {
    if (!patch) return;
    const auto done = api_.patch({resource, "", name, "status"}, PatchType::kMerge, *patch);
    if (!done && done.error().kind != ErrorKind::kNotFound) trouble = done.error();
  };
  const auto now = wall_clock();
  for (const auto& [name, queue] : queues)
    write(scheduler::kQueues, name,
          scheduler::queue_status(*queue, use->sharing, of(use->queues, scheduler::queue_path(name)), now));
  for (const auto& [name, quota] : quotas)
    write(scheduler::kQuotas, name,
          scheduler::quota_status(*quota, use->sharing, of(use->namespaces, name), now));
  use_trouble_.report(trouble ? Failure(*trouble) : Status());
}

void ClusterWatch::run(const std::stop_token& stop) {
  auto looked = std::chrono::steady_clock::now();
  auto wrote = looked;
  while (pause(kLookForGroups, stop)) {
    read_absent_groups();
    if (std::chrono::steady_clock::now() - wrote > kBetweenUses) {
      write_use();
      wrote = std::chrono::steady_clock::now();
    }
    if (std::chrono::steady_clock::now() - looked < kLookForApis) continue;
    follow_if_served();
    looked = std::chrono::steady_clock::now();
  }
}

}  // namespace drover::kube

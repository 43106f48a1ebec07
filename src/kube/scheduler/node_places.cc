// The nodes that a scheduler decides on, as places that placement knows.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kube/gpu_topology.h"
#include "kube/scheduler/scheduler.h"
#include "placement/wiring.h"

namespace drover::kube::scheduler {
namespace {

bool same(const Node& one, const Node& other) {
  return one.labels == other.labels && *one.taints == *other.taints &&
         one.unschedulable == other.unschedulable && one.held == other.held &&
         one.allocatable == other.allocatable && one.most_pods == other.most_pods &&
         one.features == other.features;
}

/// The scheduler's own taint, which is for others, is taken out.
void note_own_taint(Node& node, const std::string& scheduler) {
  const auto is_own = [&](const Taint& taint) { return taint.key == kHeldTaint && taint.value == scheduler; };
  if (std::ranges::none_of(*node.taints, is_own)) return;
  node.held = true;
  auto others = *node.taints;
  std::erase_if(others, is_own);
  node.taints = std::make_shared<const Taints>(std::move(others));
}

/// As many as a node says that it can give out.
gpu::Inventory counted_gpus(const std::string& node, std::int64_t count) {
  gpu::Inventory inventory;
  const auto size = static_cast<std::size_t>(std::clamp<std::int64_t>(count, 0, placement::kMaxDevices));
  for (std::size_t i = 0; i < size; ++i)
    inventory.devices.push_back({.uuid = fmt::format("{}#{}", node, i), .index = static_cast<int>(i)});
  inventory.links.assign(size, std::vector<gpu::Link>(size));
  return inventory;
}

/// With those that drivers publish: how they are joined nobody has said.
void add_published(const std::vector<gpu::Device>& devices, gpu::Inventory& inventory) {
  for (const auto& device : devices) {
    if (inventory.devices.size() == placement::kMaxDevices) return;
    if (std::ranges::find(inventory.devices, device.uuid, &gpu::Device::uuid) != inventory.devices.end())
      continue;
    inventory.devices.push_back(device);
    inventory.devices.back().index = static_cast<int>(inventory.devices.size()) - 1;
    for (auto& row : inventory.links) row.emplace_back();
    inventory.links.emplace_back(inventory.devices.size());
    inventory.links.back().back() = {0, gpu::PcieLevel::kSameDevice};
  }
}

}  // namespace

/// Else they are only counted, under names that mean nothing to anybody else.
bool Scheduler::names_gpus(const std::string& node) const {
  const auto said = gpus_.find(node);
  return (said != gpus_.end() && said->second) || claims_.published(node) != nullptr;
}

placement::Node Scheduler::placement_node(const Node& node) const {
  placement::Node made{.name = node.name};
  made.milli_cpus = node.allocatable.cpu;
  made.memory_bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(node.allocatable.memory, 0));
  const auto found = node.allocatable.others.find(options_.gpu_resource);
  auto count = found == node.allocatable.others.end() ? 0 : found->second;
  const auto* const published = claims_.published(node.name);
  const auto said = gpus_.find(node.name);
  if (!names_gpus(node.name)) made.inventory = counted_gpus(node.name, count);
  if (said != gpus_.end() && said->second) made.inventory = *said->second;
  if (published != nullptr) add_published(*published, made.inventory);
  const auto is_published = [&](const gpu::Device& device) {
    return published != nullptr &&
           std::ranges::find(*published, device.uuid, &gpu::Device::uuid) != published->end();
  };
  // What claims have of it is counted; until a driver has let go of one that has ended, it is withheld.
  for (auto& device : made.inventory.devices)
    if (device.unhealthy == kInUseByClaim && claims_.is_claimed(node.name, device.uuid))
      device.unhealthy.clear();
  for (auto& device : made.inventory.devices)
    if (gpu::why_withheld(device).empty() && count-- <= 0 && !is_published(device))
      device.unhealthy = "its node does not offer it";
  return made;
}

void Scheduler::put_node(Node node, std::optional<gpu::Inventory> gpus) {
  const auto name = node.name;
  note_own_taint(node, options_.name);
  holds_.note_node(name, node.held, decided_at_);
  const auto state = cluster_.nodes().find(name);
  const bool known = state != cluster_.nodes().end() && state->second.node;
  gpus_.insert_or_assign(name, std::move(gpus));
  if (!known || !same(*state->second.node, node)) {
    // Domains of topology are counted over all nodes.
    if (!known || state->second.node->labels != node.labels)
      eligible_.note_all();
    else
      eligible_.note_node(name);
    changed_ = true;
    claims_.note_node(name);
    cluster_.put_node(std::move(node));
  }
  put_places(name);
}

void Scheduler::put_places(const std::string& name) {
  const auto state = cluster_.nodes().find(name);
  if (state == cluster_.nodes().end() || !state->second.node) return;
  gone_nodes_.erase(name);
  if (places_.node(name) == nullptr && name < last_node_) out_of_order_ = true;
  last_node_ = std::max(last_node_, name);
  auto made = placement_node(*state->second.node);
  if (const auto* const before = places_.node(name); before != nullptr && *before == made) return;
  places_.set_node(std::move(made));
  bound_.note_nodes();
  changed_ = true;
}

void Scheduler::remove_node(const std::string& name) {
  changed_ = true;
  cluster_.remove_node(name);
  holds_.remove_node(name);
  claims_.note_node(name);
  gpus_.erase(name);
  eligible_.note_all();
  if (places_.node(name) == nullptr) return;
  places_.set_node({.name = name, .cordoned = "is gone"});
  gone_nodes_.insert(name);  // until its pods are gone
}

void Scheduler::put_namespace(const std::string& name, Labels labels, QueueNames queues) {
  change_cluster([&](Cluster& cluster) { cluster.put_namespace(name, std::move(labels)); });
  namespace_queues_.insert_or_assign(name, std::move(queues));
}

void Scheduler::remove_namespace(const std::string& name) {
  change_cluster([&](Cluster& cluster) { cluster.remove_namespace(name); });
  namespace_queues_.erase(name);
}

}  // namespace drover::kube::scheduler

#include "placement/cluster.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "placement/cluster_impl.h"
#include "placement/explain.h"

namespace drover::placement {

std::optional<NodePolicy> node_policy(std::string_view name) {
  if (name == "pack") return NodePolicy::kPack;
  if (name == "spread") return NodePolicy::kSpread;
  if (name == "fragmentation") return NodePolicy::kFragmentation;
  return std::nullopt;
}

Cluster::Cluster(NodePolicy policy) : impl_(std::make_unique<Impl>()) {
  impl_->context.policy = policy;
}
Cluster::Cluster(const Cluster& other) : impl_(std::make_unique<Impl>(*other.impl_)) {}
Cluster& Cluster::operator=(const Cluster& other) {
  if (this != &other) impl_ = std::make_unique<Impl>(*other.impl_);
  return *this;
}
Cluster::Cluster(Cluster&&) noexcept = default;
Cluster& Cluster::operator=(Cluster&&) noexcept = default;
Cluster::~Cluster() = default;

void Cluster::set_workload(std::vector<TypicalRequest> mix) {
  impl_->context.fragmentation.set_mix(std::move(mix));
}

void Cluster::detach() {
  impl_->views.clear();
}

void Cluster::set_node(Node node) {
  impl_->set_node(std::move(node));
}

Status Cluster::remove_node(const std::string& name) {
  return impl_->remove_node(name);
}

const Node* Cluster::node(const std::string& name) const {
  const auto* entry = impl_->find(name);
  return entry == nullptr ? nullptr : entry->node.get();
}

std::vector<std::string> Cluster::nodes() const {
  std::vector<std::string> names;
  for (std::size_t slot = 0; slot < impl_->nodes.size(); ++slot)
    names.push_back(impl_->nodes.at(slot).node->name);
  return names;
}

std::size_t Cluster::size() const {
  return impl_->nodes.size();
}

Free Cluster::free(const std::string& name) const {
  const auto* entry = impl_->find(name);
  return entry == nullptr ? Free{} : free_of(entry->state);
}

workload::Share Cluster::left_of(const std::string& name, const std::string& gpu) const {
  const auto* entry = impl_->find(name);
  const auto device = entry == nullptr ? std::nullopt : entry->device(gpu);
  if (!device) return {.milli = 0};
  const auto& left = entry->state.devices[static_cast<std::size_t>(*device)];
  return {std::max(0, left.free_milli),
          static_cast<std::uint64_t>(std::max<std::int64_t>(0, left.free_memory))};
}

Answer Cluster::place(const Request& request) {
  if (impl_->ledger.group(request.group) != nullptr) return impl_->place_in_group(request);
  if (auto decision = impl_->best(request)) return *std::move(decision);
  return impl_->why_not(request);
}

std::optional<Decision> Cluster::try_place(const Request& request) {
  const auto* group = impl_->ledger.group(request.group);
  return group == nullptr ? impl_->best(request) : impl_->try_place_on(group->node, request);
}

std::vector<std::size_t> Cluster::fitting_positions(const Request& request) {
  const auto* group = impl_->ledger.group(request.group);
  if (group == nullptr) return impl_->fitting(request);
  if (impl_->try_place_on(group->node, request)) return {*impl_->nodes.find(group->node)};
  return {};
}

std::size_t Cluster::count_fitting(const Request& request) {
  if (impl_->ledger.group(request.group) == nullptr) return impl_->count_fitting(request);
  return fitting_positions(request).size();
}

Cluster::Ways Cluster::ways_on(const std::string& node, const Request& request, std::size_t most) {
  return impl_->ways_on(node, request, most);
}

bool Cluster::alike(const std::string& a, const std::string& b) const {
  const auto* first = impl_->find(a);
  const auto* second = impl_->find(b);
  return first != nullptr && second != nullptr && placement::alike(*first, *second);
}

std::optional<Decision> Cluster::try_place_on(const std::string& node, const Request& request) {
  return impl_->try_place_on(node, request);
}

Cluster Cluster::emptied() const {
  Cluster empty;
  *empty.impl_ = impl_->emptied();
  return empty;
}

Answer Cluster::place_on(const std::string& node, const Request& request) {
  return impl_->place_on(node, request);
}

Status Cluster::possible(const Request& request) const {
  return impl_->possible(Shape(request));
}

Status Cluster::allocate(const std::string& id, const Request& request, const Decision& decision) {
  DROVER_CHECK_OK(impl_->check(id, request, decision));
  impl_->add(id, request, decision);
  return {};
}

void Cluster::restore(const std::string& id, const Request& request, const Decision& decision) {
  release(id);
  impl_->add(id, request, decision);
}

void Cluster::release(const std::string& id) {
  if (impl_->ledger.find(id) != nullptr) impl_->remove(id);
}

const Decision* Cluster::find(const std::string& id) const {
  const auto* allocation = impl_->ledger.find(id);
  return allocation == nullptr ? nullptr : &allocation->decision;
}

bool Cluster::set_learning(bool on) {
  return std::exchange(impl_->learning, on);
}

}  // namespace drover::placement

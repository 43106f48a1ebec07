#include "placement/cluster.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "placement/cluster_impl.h"
#include "placement/explain.h"

namespace drover::placement {

Cluster::Cluster(NodePolicy policy) : impl_(std::make_unique<Impl>()) {
  impl_->policy = policy;
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
  impl_->fragmentation.set_mix(std::move(mix));
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
  for (const auto& entry : impl_->entries) names.push_back(entry.node->name);
  return names;
}

Free Cluster::free(const std::string& name) const {
  const auto* entry = impl_->find(name);
  return entry == nullptr ? Free{} : free_of(entry->state);
}

Answer Cluster::place(const Request& request) {
  impl_->look_around();
  const Shape shape(request);
  if (impl_->ledger.group(request.group) != nullptr) return impl_->place_in_group(shape);
  if (auto decision = impl_->best(shape)) return *std::move(decision);
  return impl_->explain(shape);
}

std::optional<Decision> Cluster::try_place(const Request& request) {
  impl_->look_around();
  const Shape shape(request);
  if (impl_->ledger.group(request.group) == nullptr) return impl_->best(shape);
  auto answer = impl_->place_in_group(shape);
  if (auto* decision = std::get_if<Decision>(&answer)) return std::move(*decision);
  return std::nullopt;
}

std::vector<std::string> Cluster::fitting(const Request& request) {
  impl_->look_around();
  return impl_->fitting(Shape(request));
}

Answer Cluster::place_on(const std::string& node, const Request& request) {
  impl_->look_around();
  return impl_->place_on(node, Shape(request));
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

}  // namespace drover::placement

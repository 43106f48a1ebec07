#include "kube/scheduler/claims/node_devices.h"

#include <algorithm>

namespace drover::kube::scheduler {
namespace {

void add_counters(std::map<std::string, Counters, std::less<>>& sets, const CounterSets& counters, int sign) {
  for (const auto& [set, values] : counters) {
    const auto found = sets.find(set);
    if (found == sets.end()) continue;
    for (const auto& [name, value] : values) found->second[name] += sign * value;
  }
}

bool any_is_negative(const std::map<std::string, Counters, std::less<>>& sets) {
  return std::ranges::any_of(sets, [](const auto& set) {
    return std::ranges::any_of(set.second, [](const auto& counter) { return counter.second < 0; });
  });
}

}  // namespace

NodeDevices::NodeDevices(const DevicePools& pools, const Node& node) : pools_(pools.pools_of(node)) {
  counters_.resize(pools_.size());
  for (std::size_t i = 0; i < pools_.size(); ++i) {
    if (!pools_[i].usable()) continue;
    for (const auto* slice : pools_[i].slices)
      for (const auto& device : slice->devices) {
        const auto use = pools_[i].uses->find(device.name);
        candidates_.push_back({i, slice, &device, !device.nodes || chooses(*device.nodes, node),
                               pools.taints_of(*slice, device),
                               use == pools_[i].uses->end() ? nullptr : &use->second});
      }
  }
}

bool NodeDevices::is_free(std::size_t index, std::size_t claim, bool admin) const {
  const auto& candidate = candidates_[index];
  if (admin) return std::ranges::find(candidate.claims, claim) == candidate.claims.end();
  return candidate.claims.empty() && (candidate.use == nullptr || candidate.use->whole == 0);
}

bool NodeDevices::has_left(const Candidate& candidate, const Amounts& share) const {
  auto consumed = candidate.use == nullptr ? Consumed() : candidate.use->consumed;
  for (const auto* other : candidate.shares)
    for (const auto& [name, amount] : *other) consumed[name] += amount.value;
  return is_left(share, candidate.kind().capacities, consumed);
}

NodeDevices::CountersLeft& NodeDevices::counters_of(std::size_t index) {
  auto& left = counters_[index];
  if (left) return *left;
  const auto& pool = pools_[index];
  left.emplace().sets = pool.counters;
  for (const auto* slices : {&pool.slices, &pool.elsewhere})
    for (const auto* slice : *slices)
      for (const auto& device : slice->devices)
        if (device.consumes && pool.uses->contains(device.name))
          add_counters(left->sets, *device.consumes, -1);
  left->overdrawn = any_is_negative(left->sets);
  return *left;
}

bool NodeDevices::take_counters(const Candidate& candidate) {
  auto& left = counters_of(candidate.pool);
  if (left.overdrawn) return false;
  const auto& consumes = *candidate.device->consumes;
  add_counters(left.sets, consumes, -1);
  if (!any_is_negative(left.sets)) return true;
  add_counters(left.sets, consumes, 1);
  return false;
}

bool NodeDevices::take(std::size_t index, std::size_t claim, bool admin, const Amounts* share) {
  auto& candidate = candidates_[index];
  if (!is_free(index, claim, admin) || (share != nullptr && !has_left(candidate, *share))) return false;
  const auto shared = candidate.kind().shared;
  // Whoever shares it first takes the counters for all.
  const auto counts = candidate.device->consumes != nullptr && !(shared && candidate.is_shared_already());
  if (counts && !take_counters(candidate)) return false;
  counted_.push_back(counts);
  if (shared)
    candidate.shares.push_back(share);
  else
    candidate.claims.push_back(claim);
  return true;
}

void NodeDevices::give_back(std::size_t index) {
  auto& candidate = candidates_[index];
  if (counted_.back()) add_counters(counters_of(candidate.pool).sets, *candidate.device->consumes, 1);
  counted_.pop_back();
  if (candidate.kind().shared)
    candidate.shares.pop_back();
  else
    candidate.claims.pop_back();
}

}  // namespace drover::kube::scheduler

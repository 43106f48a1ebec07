#include "placement/schedule/room.h"

#include <fmt/format.h>

namespace drover::placement::schedule {
namespace {

/// An id that no job has: what is kept on a node, in parts. At most one part for each set of CPUs.
std::string kept_id(const std::string& node, std::size_t part) {
  return fmt::format("\x01kept/{}/{}", node, part);
}
constexpr std::size_t kMostParts = 64;

}  // namespace

void take(Cluster& cluster, const Job& job, const std::vector<Decision>& decisions) {
  for (std::size_t rank = 0; rank < decisions.size(); ++rank)
    cluster.restore(allocation_id(job, rank), job.gang.members[rank], decisions[rank]);
}

void give_back(Cluster& cluster, const Job& job) {
  for (std::size_t rank = 0; rank < job.gang.members.size(); ++rank)
    cluster.release(allocation_id(job, rank));
}

Room::Room(Cluster& cluster, const std::vector<const RunningJob*>& ending)
    : cluster_(cluster), learning_(cluster.set_learning(false)), ending_(ending) {
  for (const auto* running : ending)
    for (const auto& [node, footprint] : footprints(running->job.gang, running->decisions))
      add(freeing_[node], footprint, -1);
  changes_soon_ = !ending.empty();
}

Room::~Room() {
  drop_kept(cluster_);
  for (const auto& id : started_) cluster_.release(id);
  cluster_.set_learning(learning_);
}

Cluster& Room::soon() {
  if (soon_) return *soon_;
  soon_ = std::make_unique<Cluster>(cluster_);
  for (const auto* running : ending_) give_back(*soon_, running->job);
  for (const auto& [node, balance] : balances_) keep(*soon_, node, balance.delta);
  return *soon_;
}

Status Room::start(const Job& job, const std::vector<Decision>& decisions, Span span) {
  for (std::size_t rank = 0; rank < decisions.size(); ++rank) {
    const auto id = allocation_id(job, rank);
    if (auto status = cluster_.allocate(id, job.gang.members[rank], decisions[rank]); !status) {
      for (std::size_t taken = 0; taken < rank; ++taken) {
        cluster_.release(allocation_id(job, taken));
        started_.erase(allocation_id(job, taken));
      }
      return status;
    }
    started_.insert(id);
  }
  if (lasting_) take(*lasting_, job, decisions);
  if (soon_) take(*soon_, job, decisions);
  if (span == Span::kLasting || !reserved()) return {};
  for (const auto& [node, footprint] : footprints(job.gang, decisions)) {
    const auto balance = balances_.find(node);
    if (balance == balances_.end()) continue;
    add(balance->second.delta, footprint, -1);
    refresh(node);
  }
  return {};
}

void Room::hold(const Job& job, const std::vector<Decision>& decisions,
                const std::vector<const RunningJob*>& victims) {
  auto& later = soon();
  std::map<std::string, Footprint> changes = footprints(job.gang, decisions);
  std::set<std::string> nodes;
  for (const auto& [node, unused] : changes) nodes.insert(node);
  for (const auto* victim : victims) {
    give_back(later, victim->job);
    for (const auto& [node, footprint] : footprints(victim->job.gang, victim->decisions)) {
      add(changes[node], footprint, -1);
      nodes.insert(node);
    }
  }
  take(later, job, decisions);
  for (const auto& node : nodes) {
    const auto [balance, added] = balances_.try_emplace(node);
    if (added) balance->second.soon = freeing_[node];
    add(balance->second.soon, changes[node]);
    balance->second.peak = highest(balance->second.peak, balance->second.soon);
    refresh(node);
  }
  changes_soon_ = true;
}

void Room::reserve(const Job& job, const std::vector<Decision>& decisions,
                   const std::vector<const RunningJob*>& gone) {
  lasting_ = std::make_unique<Cluster>(cluster_);
  std::map<std::string, Footprint> changes = footprints(job.gang, decisions);
  for (const auto* running : gone)
    for (const auto& [node, footprint] : footprints(running->job.gang, running->decisions))
      if (const auto found = changes.find(node); found != changes.end()) add(found->second, footprint, -1);
  for (const auto& [node, change] : changes) {
    const auto [balance, added] = balances_.try_emplace(node);
    if (added) balance->second.soon = freeing_[node];
    add(balance->second.delta, change);
    refresh(node);
  }
}

Cluster& Room::bare() {
  drop_kept(cluster_);
  return cluster_;
}

/// Replaces what is kept on the node by the positive parts of the footprint.
void Room::keep(Cluster& cluster, const std::string& node, const Footprint& footprint) {
  for (std::size_t part = 0; part < kMostParts && cluster.find(kept_id(node, part)) != nullptr; ++part)
    cluster.release(kept_id(node, part));
  std::size_t part = 0;
  for (const auto& [request, decision] : as_allocations(node, footprint))
    if (part < kMostParts) cluster.restore(kept_id(node, part++), request, decision);
}

void Room::refresh(const std::string& node) {
  const auto& balance = balances_.at(node);
  keep(cluster_, node, balance.peak);
  auto later = balance.soon;
  add(later, balance.delta);
  if (lasting_) keep(*lasting_, node, highest(balance.peak, later));
  if (soon_) keep(*soon_, node, balance.delta);
}

void Room::drop_kept(Cluster& cluster) {
  for (const auto& [node, unused] : balances_) keep(cluster, node, {});
}

}  // namespace drover::placement::schedule

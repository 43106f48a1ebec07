#pragma once

// The inside of Cluster: nodes with their states, the ledger, and the search for a place. Only cluster*.cc
// read this.

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "placement/cluster.h"
#include "placement/feasibility.h"
#include "placement/fragmentation.h"
#include "placement/ledger.h"
#include "placement/node_state.h"
#include "placement/policies.h"

namespace drover::placement {

struct NodeEntry {
  std::shared_ptr<const Node> node;
  std::shared_ptr<const NodeKind> kind;
  NodeState state;
  int worth = 0;        ///< of its kind, among the kinds of the cluster
  int allocations = 0;  ///< on it

  /// Position of a device in the kind, if the node lists it.
  std::optional<int> device(const std::string& uuid) const;
};

struct Cluster::Impl {
  NodePolicy policy = NodePolicy::kPack;
  std::vector<NodeEntry> entries;  ///< in order of addition
  std::unordered_map<std::string, std::size_t> positions;
  std::unordered_map<std::string, std::shared_ptr<const NodeKind>> kinds;  ///< by fingerprint
  Ledger ledger;
  Fragmentation fragmentation;

  NodeEntry* find(const std::string& name);
  const NodeEntry* find(const std::string& name) const { return const_cast<Impl*>(this)->find(name); }

  // cluster_nodes.cc
  void set_node(Node node);
  Status remove_node(const std::string& name);
  void rank_kinds();
  /// Takes what the ledger says from a node that is all free.
  void recharge(NodeEntry& entry);
  void charge(const Allocation& allocation, bool gpus, int sign);

  // cluster_allocate.cc
  Status check(const std::string& id, const Request& request, const Decision& decision) const;
  void add(const std::string& id, const Request& request, const Decision& decision);
  void remove(const std::string& id);

  // cluster_place.cc
  /// Lets the fragmentation policy see what is free, when it has to.
  void look_around();
  Score rate(const NodeEntry& entry, const Shape& shape, DeviceMask devices) const;
  std::optional<Decision> best(const Shape& shape) const;
  std::vector<std::string> fitting(const Shape& shape) const;
  Answer place_on(const std::string& node, const Shape& shape) const;
  Answer place_in_group(const Shape& shape) const;
  Answer explain(const Shape& shape) const;

  // cluster_possible.cc
  Status possible(const Shape& shape) const;
};

Free free_of(const NodeState& state);
/// What the request gets when it gets these devices.
Decision decide(const NodeEntry& entry, const Shape& shape, DeviceMask devices);

}  // namespace drover::placement

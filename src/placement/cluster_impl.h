#pragma once

// The inside of Cluster: nodes with their states, the ledger, and the search for a place. Only cluster*.cc
// read this.

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "placement/cluster.h"
#include "placement/ledger.h"
#include "placement/node_table.h"
#include "placement/shape_view.h"

namespace drover::placement {

struct Cluster::Impl {
  struct KnownKind {
    std::shared_ptr<const NodeKind> kind;
    int nodes = 0;
  };

  PolicyContext context;
  NodeTable nodes;
  Cow<std::map<std::string, KnownKind>> kinds{std::map<std::string, KnownKind>{}};  ///< by fingerprint
  Ledger ledger;
  ViewCache views;
  bool learning = true;
  Cow<std::set<std::string>> awaited{std::set<std::string>{}};  ///< nodes that only the journal knows yet

  const NodeEntry* find(const std::string& name) const;

  // cluster_nodes.cc
  void set_node(Node node);
  Status remove_node(const std::string& name);
  std::shared_ptr<const NodeKind> kind_of(const Node& node);
  void count_kind(const NodeKind& kind, int nodes);
  void rank_kinds();
  /// All free, but for what the ledger says.
  void fill(NodeEntry& entry) const;
  Cluster::Impl emptied() const;

  // cluster_allocate.cc
  Status check(const std::string& id, const Request& request, const Decision& decision) const;
  void add(const std::string& id, const Request& request, const Decision& decision);
  void remove(const std::string& id);

  // cluster_place.cc
  /// The view for such a request, after the policy saw what it has to.
  const ShapeView& view(const Request& request);
  void refresh_fragmentation();
  std::optional<Decision> best(const Request& request);
  std::vector<std::size_t> fitting(const Request& request);
  std::size_t count_fitting(const Request& request);
  Answer place_on(const std::string& node, const Request& request);
  std::optional<Decision> try_place_on(const std::string& node, const Request& request);
  Answer place_in_group(const Request& request) const;
  Reasons why_not(const Request& request);

  // cluster_ways.cc
  Cluster::Ways ways_on(const std::string& node, const Request& request, std::size_t most);

  // cluster_possible.cc
  Status possible(const Shape& shape) const;
};

/// PolicyContext::worth of these kinds.
std::vector<int> ranks_of(const std::vector<const NodeKind*>& kinds);
Free free_of(const NodeState& state);
bool alike(const NodeEntry& a, const NodeEntry& b);
/// Takes what is allocated; with sign -1 gives it back.
void charge(NodeEntry& entry, const Allocation& allocation, bool gpus, int sign);
/// What the request gets when it gets these devices.
Decision decide(const NodeEntry& entry, const Shape& shape, DeviceMask devices);

}  // namespace drover::placement

#pragma once

// A cluster as a scheduler sees it: its nodes with the pods that are bound to them, and what else decides
// where a pod may run. Kept up to date object by object, as watches tell of them; what is put again replaces
// what was there. It owns what it is given. Objects may come in any order: pods of a node that is not known
// yet, or no longer, wait for it and count nowhere. One thread at a time.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "kube/scheduler/node.h"
#include "kube/scheduler/pod.h"
#include "kube/scheduler/pool.h"
#include "kube/scheduler/volumes.h"

namespace drover::kube::scheduler {

/// A node and what is bound to it.
struct NodeState {
  std::optional<Node> node;                                             ///< nullopt: only its pods are known
  std::map<std::string, std::shared_ptr<const Pod>, std::less<>> pods;  ///< by Pod::uid
  Resources requested;
  std::multiset<HostPort> ports;
  std::map<std::string, bool, std::less<>> csi_drivers;  ///< CsiDrivers::limited
};

/// The pods with a required anti-affinity of the same words, by the node they are on.
using TermHolders = std::map<const NodeState*, std::size_t>;

class Cluster {
 public:
  void put_node(Node node);
  void remove_node(std::string_view name);
  /// A pod that is bound to no node, or that has ended, takes nothing: it is as good as removed.
  void put_pod(Pod pod);
  void remove_pod(std::string_view uid);
  void put_namespace(std::string name, Labels labels);
  void remove_namespace(std::string_view name);
  void put_volume_claim(VolumeClaim claim);
  void remove_volume_claim(std::string_view name_space, std::string_view name);
  void put_volume(Volume volume);
  void remove_volume(std::string_view name);
  void put_storage_class(StorageClass storage_class);
  void remove_storage_class(std::string_view name);
  void put_csi_driver(const CsiDriver& driver);
  void remove_csi_driver(std::string_view name);
  void put_storage_capacity(StorageCapacity capacity);
  void remove_storage_capacity(std::string_view name_space, std::string_view name);
  /// What was decided for claims counts until it is dropped, whatever is told meanwhile.
  void keep(const VolumeDecision& decision, const std::string& node);
  void drop(const VolumeDecision& decision);
  void put_csi_drivers(CsiDrivers drivers);
  /// A class of devices: what asks for `resource` ("" for none), or for the class by its own name for that,
  /// is given a claim where nodes do not offer the resource themselves.
  void put_device_class(std::string_view name, std::string resource);
  void remove_device_class(std::string_view name);

  /// By name; also those of which only pods are known.
  const std::map<std::string, NodeState, std::less<>>& nodes() const { return nodes_; }
  const std::map<std::string, Labels, std::less<>>& namespaces() const { return namespaces_; }
  /// nullptr when there is none.
  const VolumeClaim* volume_claim(std::string_view name_space, std::string_view name) const;
  const Volume* volume(std::string_view name) const;
  const std::map<std::string, Volume, std::less<>>& volumes() const { return volumes_; }
  const StorageClass* storage_class(std::string_view name) const;
  const std::map<std::pair<std::string, std::string>, StorageCapacity>& storage_capacities() const {
    return storage_capacities_;
  }
  /// A CSI driver that is told of, and whether it tells where it has room.
  bool has_csi_driver(std::string_view name) const { return csi_drivers_.contains(name); }
  bool tells_capacity(std::string_view driver) const;
  /// As the object says, or as was decided.
  std::optional<Volume::Owner> owner_of(const Volume& volume) const;
  std::string selected_node(const VolumeClaim& claim) const;
  /// Whether a pod that is bound to a known node uses that claim.
  bool is_used(std::string_view name_space, std::string_view claim) const;
  /// Whether a class of devices stands for a resource of that name.
  bool has_device_class(std::string_view resource) const;
  const std::map<PodTerm, TermHolders>& anti_affinity() const { return anti_affinity_; }
  /// The distinct lists of taints of its nodes: Node::taints points to them.
  const Pool<Taints>& taints() const { return taints_; }

 private:
  using Named = std::pair<std::string, std::string>;  ///< namespace, name

  void count(NodeState& state, const Pod& pod, int sign);
  void drop_if_empty(std::string_view node_name);

  std::map<std::string, NodeState, std::less<>> nodes_;
  std::map<std::string, std::string, std::less<>> node_of_pod_;  ///< by uid
  std::map<std::string, Labels, std::less<>> namespaces_;
  std::map<Named, VolumeClaim> volume_claims_;
  std::map<std::string, Volume, std::less<>> volumes_;
  std::map<std::string, StorageClass, std::less<>> storage_classes_;
  std::map<std::string, bool, std::less<>> csi_drivers_;  ///< CsiDriver::tells_capacity
  std::map<Named, StorageCapacity> storage_capacities_;
  /// Decisions that are kept, each as often as it was made.
  template <typename What>
  struct Kept {
    What what;
    int times = 0;
  };
  std::map<std::string, Kept<Volume::Owner>, std::less<>> owners_;  ///< by volume
  std::map<Named, Kept<std::string>> selected_nodes_;               ///< by claim
  std::map<std::string, std::string, std::less<>>
      device_classes_;  ///< Resources, by the class' own name for them
  std::map<Named, TermHolders> claim_users_;
  std::map<PodTerm, TermHolders> anti_affinity_;
  Pool<Taints> taints_;
  Pool<Labels> labels_;
  Pool<PodTemplate> templates_;
};

}  // namespace drover::kube::scheduler

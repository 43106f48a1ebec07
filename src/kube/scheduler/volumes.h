#pragma once

// What a scheduler has to know of PersistentVolumeClaims, of PersistentVolumes, and of what says where new
// ones can be had, out of the API server's objects. Pure.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "kube/scheduler/labels.h"

namespace drover::kube::scheduler {

struct VolumeTraits {
  std::set<std::string> modes = {};  ///< "ReadWriteOnce", …
  bool block = false;                ///< and no file system
  std::string attributes_class = {};
};

struct VolumeClaim {
  std::string name_space = {};
  std::string name = {};
  std::string volume_name = {};
  bool bound = false;  ///< and the volume to it
  bool lost = false;   ///< its volume is gone
  bool terminating = false;
  bool for_one_pod = false;  ///< ReadWriteOncePod
  std::string uid = {};
  std::string storage_class = {};
  std::string selected_node = {};  ///< for which a volume is being made; "": for none
  std::optional<Nanos> size = {};
  VolumeTraits traits = {};  ///< that its volume has to have
  std::optional<Selector> selector = {};
};
Result<VolumeClaim> read_volume_claim(const nlohmann::json& claim);

struct Volume {
  std::string name = {};
  std::string kind = {};    ///< "csi", "local", …: its field in the object; "" when it has none
  std::string driver = {};  ///< of kind csi
  std::optional<NodeTerms> node_terms = {};
  /// Labels of regions and zones, and the values that a node may have there.
  std::vector<std::pair<std::string, std::set<std::string>>> zones = {};
  Labels labels = {};
  std::string storage_class = {};
  Nanos size = 0;
  VolumeTraits traits = {};
  bool available = false;
  bool terminating = false;
  /// Whose it is, or will be.
  struct Owner {
    std::string name_space, claim;
    std::string uid = {};  ///< "": whoever has the name
  };
  std::optional<Owner> owner = {};
};
Result<Volume> read_volume(const nlohmann::json& volume);
bool is_owner(const Volume::Owner& owner, const VolumeClaim& claim);

struct StorageClass {
  std::string name = {};
  std::string provisioner = {};
  bool waits = false;  ///< for the first pod (WaitForFirstConsumer)
  /// Of nodes that can have its volumes: one of them must hold; nullopt: every node.
  std::optional<std::vector<std::vector<Requirement>>> topologies = {};

  bool makes_volumes() const { return !provisioner.empty() && provisioner != "kubernetes.io/no-provisioner"; }
};
Result<StorageClass> read_storage_class(const nlohmann::json& storage_class);

struct CsiDriver {
  std::string name = {};
  bool tells_capacity = false;  ///< where it has room
};
Result<CsiDriver> read_csi_driver(const nlohmann::json& driver);

/// How large a volume may be at most that is made for some nodes.
struct StorageCapacity {
  std::string name_space = {};
  std::string name = {};
  std::string storage_class = {};
  Selector nodes = {};
  std::optional<Nanos> largest = {};  ///< nullopt: not known
};
Result<StorageCapacity> read_storage_capacity(const nlohmann::json& capacity);

/// What a claim that waits for its first pod gets.
struct VolumeDecision {
  std::string name_space = {};
  std::string claim = {};
  std::string claim_uid = {};
  std::string volume = {};  ///< that is bound to it; "": one is made for the node
  bool told = false;        ///< the API server has said so
};

}  // namespace drover::kube::scheduler

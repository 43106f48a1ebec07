#pragma once

// What a scheduler has to know of PersistentVolumeClaims and of the PersistentVolumes that they are bound to,
// out of the API server's objects. Pure.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "kube/scheduler/labels.h"

namespace drover::kube::scheduler {

struct VolumeClaim {
  std::string name_space = {};
  std::string name = {};
  std::string volume_name = {};
  bool bound = false;  ///< and the volume to it
  bool lost = false;   ///< its volume is gone
  bool terminating = false;
  bool for_one_pod = false;  ///< ReadWriteOncePod
};
Result<VolumeClaim> read_volume_claim(const nlohmann::json& claim);

struct Volume {
  std::string name = {};
  std::string kind = {};    ///< "csi", "local", …: its field in the object; "" when it has none
  std::string driver = {};  ///< of kind csi
  std::optional<NodeTerms> node_terms = {};
  /// Labels of regions and zones, and the values that a node may have there.
  std::vector<std::pair<std::string, std::set<std::string>>> zones = {};
};
Result<Volume> read_volume(const nlohmann::json& volume);

}  // namespace drover::kube::scheduler

#pragma once

// What objects say of a gang: PodGroups of several schedulers, and what makes pods, as Jobs and JobSets.
// Values; pure.

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "base/result.h"
#include "kube/client/object.h"

namespace drover::kube::scheduler {

struct GangGroup {
  std::string uid = {};                                  ///< of the object
  int minimum = 1;                                       ///< pods that start together; 1: no gang at all
  std::map<std::string, int, std::less<>> of_subgroups;  ///< the same of its parts; of none more than it says
  std::string queue;                                     ///< "": it names none
  std::optional<std::int64_t> priority;                  ///< that all its pods must have
  std::optional<bool> preempts;                          ///< whether, as all its pods must
  std::string topology_key;                              ///< a label of nodes, alike for all; "": none
  std::optional<std::chrono::seconds> schedule_timeout;  ///< for the whole of it to start

  bool operator==(const GangGroup&) const = default;
};

/// Of a kind that GangObject::resource names, in any version: how many pods are made at once and have to
/// start together. kInvalid, in words.
Result<GangGroup> read_gang_group(const Resource& resource, const nlohmann::json& object);

}  // namespace drover::kube::scheduler

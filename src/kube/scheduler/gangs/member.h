#pragma once

// Which gang a pod belongs to: pods that start together or not at all. There are many ways to say so; the
// first of GangKind that a pod uses counts. Values; pure.

#include <compare>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "kube/client/object.h"
#include "placement/request.h"

namespace drover::kube::scheduler {

// By which a pod says what gang of ours it is of: the name is a label; the size, the rank and the arrangement
// may be annotations too.
inline constexpr const char* kGangName = "drover/gang";
inline constexpr const char* kGangSize = "drover/gang-size";
inline constexpr const char* kGangRank = "drover/gang-rank";
inline constexpr const char* kGangArrangement = "drover/gang-arrangement";

/// In the order in which they are looked for.
enum class GangKind {
  kPodGroup,         ///< Kubernetes' own: spec.schedulingGroup
  kDrover,           ///< "drover/gang", or "drover/gang-size" for the pods of one controller
  kCoscheduling,     ///< scheduling.x-k8s.io
  kVolcano,          ///< scheduling.volcano.sh
  kKai,              ///< scheduling.run.ai
  kKueue,            ///< plain pods
  kLeaderWorkerSet,  ///< each of its groups
  kJobSet,
  kJob,  ///< only with "drover/gang-of: job", also of a JobSet's
  kKubeflow,
};

struct GangIdentity {
  GangKind kind = GangKind::kPodGroup;
  std::string name_space;
  std::string name;

  auto operator<=>(const GangIdentity&) const = default;
};
/// "team/train"
std::string describe(const GangIdentity& gang);

/// An object in the namespace of the gang that says how large it is. The version is the newest that is known.
struct GangObject {
  Resource resource;
  std::string kind;  ///< for people: "PodGroup"
  std::string name;

  bool operator==(const GangObject&) const = default;
};

/// A pod as one of a gang.
struct GangMember {
  GangIdentity gang;
  std::string subgroup = {};              ///< a part of the gang that has a minimum of its own; often none
  std::vector<std::int64_t> rank = {};    ///< compared from the front; empty: it has none
  std::optional<int> size = {};           ///< how many start together, if the pod itself says so; ≥ 1
  std::optional<GangObject> object = {};  ///< which says it otherwise
  std::optional<placement::Arrangement> arrangement = {};
  bool succeeded = false;  ///< the pod has done its work

  bool operator==(const GangMember&) const = default;
};

/// nullopt for a pod that belongs to no gang. kInvalid, in words for whoever made the pod.
Result<std::optional<GangMember>> read_gang_member(const nlohmann::json& pod);

}  // namespace drover::kube::scheduler

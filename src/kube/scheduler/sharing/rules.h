#pragma once

// Queues and quotas as objects of a cluster, of the kinds Queue and Quota (drover.dev): read into the rules
// that placement knows, and their status written. Values; pure.
//
// A Queue is named by its path, with '.' where placement has '/': "research.vision" is a child of
// "research". So a label of pods can name it, which may have no '/', and no parent can be missing, be its own
// child, or change under what runs. A Quota is named as the namespace that it is for: there are never two.
// A pod does not tell who made it, so who may use a queue are namespaces: they are placement's users.

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "kube/client/object.h"
#include "placement/queues.h"

namespace drover::kube::scheduler {

inline const Resource kQueues{"drover.dev", "v1alpha1", "queues"};
inline const Resource kQuotas{"drover.dev", "v1alpha1", "quotas"};

/// "research.vision" ↔ "research/vision"
std::string queue_path(std::string_view name);
std::string queue_name(std::string_view path);

/// The rules that objects make together. A mistake in one leaves the others as they are.
struct Sharing {
  placement::Rules rules;
  /// Objects that are not accepted, by their names, and why in words. A queue among them takes nothing new,
  /// nor do its children; nor does the namespace of a quota.
  std::map<std::string, std::string, std::less<>> refused_queues;
  std::map<std::string, std::string, std::less<>> refused_quotas;
  /// Queues that are accepted without their guarantee: those above cannot give it.
  std::map<std::string, std::string, std::less<>> not_guaranteed;
  /// The highest priority that pods of a namespace may have, where its quota says one.
  std::map<std::string, int, std::less<>> most_priority;
};

/// Where guarantees do not fit together, that of the older queue holds. Unknown fields are not looked at: the
/// API server drops them by the schema.
Sharing read_sharing(const std::vector<Object>& queues, const std::vector<Object>& quotas);

/// What a queue or the namespace of a quota has, for people.
struct SharingUse {
  placement::ResourceAmounts held;
  int waiting = 0;  ///< jobs: gangs count as one

  bool operator==(const SharingUse&) const = default;
};

/// Merge patches of queues/status and quotas/status; nullopt when all of it stands there.
std::optional<nlohmann::json> queue_status(const nlohmann::json& queue, const Sharing& sharing,
                                           const SharingUse& use, TimePoint now);
std::optional<nlohmann::json> quota_status(const nlohmann::json& quota, const Sharing& sharing,
                                           const SharingUse& use, TimePoint now);

}  // namespace drover::kube::scheduler

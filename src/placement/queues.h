#pragma once

// The rules of sharing: hierarchical queues, what each is sure of and what it may hold at most, and hard
// quotas of users and namespaces. Values; pure.

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "workload/task.h"

namespace drover::placement {

struct ResourceAmounts {
  std::int64_t gpu_milli = 0;  ///< 1000 = one whole GPU; a share by memory counts in thousandths, rounded up
  std::int64_t milli_cpus = 0;
  std::uint64_t memory_bytes = 0;

  bool operator==(const ResourceAmounts&) const = default;
};

/// What is absent is not limited.
struct Limits {
  std::optional<std::int64_t> gpu_milli;
  std::optional<std::int64_t> milli_cpus;
  std::optional<std::uint64_t> memory_bytes;

  bool operator==(const Limits&) const = default;
};

/// What is absent is not limited.
struct TimeLimits {
  std::optional<std::chrono::milliseconds> timeout;       ///< it is stopped after so long
  std::optional<std::chrono::milliseconds> idle_timeout;  ///< and when its GPUs did nothing for so long

  bool operator==(const TimeLimits&) const = default;
};

/// A queue is named by its path: "research/vision" is a child of "research". What a queue holds counts for
/// all its ancestors too. Jobs may stand in any queue, also one with children.
struct Queue {
  std::string path;
  Limits limit;      ///< never exceeded at any instant
  Limits guarantee;  ///< lent to others while it is idle, and reclaimed from them when it is wanted
  int weight = 1;    ///< among its siblings, in dominant-resource fairness; ≥ 1
  std::vector<std::string> users;  ///< who may use it and its children; empty: whoever may use its parent
  TimeLimits most;  ///< that a batch task of it or its children may ask for, and gets when it asks for none

  bool operator==(const Queue&) const = default;
};

enum class SubjectKind { kUser, kNamespace };

struct Subject {
  SubjectKind kind = SubjectKind::kUser;
  std::string name;

  auto operator<=>(const Subject&) const = default;
};

/// A hard quota, over all queues.
struct Quota {
  Subject subject;
  Limits limit;
  std::optional<int> max_priority;  ///< users only: the highest priority that they may ask for; absent: 0

  bool operator==(const Quota&) const = default;
};

/// The queue of those who name none. It always exists, without limits unless somebody set them.
inline constexpr std::string_view kDefaultQueue = workload::kDefaultQueue;

/// Somebody has taken it out of use for new work; what runs there goes on.
struct Cordon {
  std::string by;      ///< a user's name
  std::string reason;  ///< for people; may be empty

  bool operator==(const Cordon&) const = default;
};

/// Of `Rules::cordons`: not of a GPU, but of the whole machine.
inline constexpr std::string_view kWholeMachine;

struct Rules {
  std::map<std::string, Queue> queues;  ///< by path; parents that nobody defined exist without limits
  std::map<Subject, Quota> quotas;
  std::map<std::string, Cordon> cordons;  ///< by the UUID of the GPU, or kWholeMachine

  bool operator==(const Rules&) const = default;
};

/// "research/vision" → "research" → "", the parent of all that have none.
std::string_view parent_of(std::string_view path);

/// Names are 1 to 64 of [A-Za-z0-9._-] per level, at most 8 levels; amounts are not negative; a guarantee is
/// not above the limit, and the guarantees of children are together not above that of their parent, where it
/// has one. All mistakes at once; the error's path names the field of the first:
/// "/queues/research~1vision/guarantee/gpu_milli", "/quotas/user:ann/max_priority".
Status validate(const Rules& rules);

/// The strictest of the queue's and of those above it.
TimeLimits time_limits(const Rules& rules, std::string_view queue);

/// Whether `user` may put work into `queue`: named on the list of the queue or of one above it, or all these
/// lists are empty. kNotFound names the queues that exist; kPermissionDenied.
Status may_use(const Rules& rules, const std::string& queue, const std::string& user);

/// What work of `user` in `queue` and `name_space` is held to, and whose limit that is: "the queue
/// 'research'". The queue first, then those above it, the user and the namespace.
struct Bound {
  std::string whose;
  Limits limit;
};
std::vector<Bound> bounds_on(const Rules& rules, std::string_view queue, const std::string& user,
                             const std::string& name_space);

/// Whether `user` may ask for that priority: their quota's max_priority, 0 without one. kPermissionDenied.
Status may_have_priority(const Rules& rules, const std::string& user, int priority);

}  // namespace drover::placement

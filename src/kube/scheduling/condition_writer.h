#pragma once

// Writes into pods why they wait: the condition PodScheduled, where kubectl and autoscalers look for it; and
// into Kubernetes' own PodGroups how they stand. Not more than so many in a second, those first that have no
// word yet, and of them who came last. What one is told may change after a second, and then ever more
// rarely. Thread safe.

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/units.h"
#include "kube/client/api.h"
#include "kube/scheduler/gangs/status.h"

namespace drover::kube {

struct PodCondition {
  std::string type;
  std::string status;
  std::string reason;
  std::string message;
  std::optional<TimePoint> since = {};  ///< it has this status; absent: as it stands there
};
/// A strategic patch of a pod's status.
nlohmann::json condition_patch(const PodCondition& condition);

struct ConditionLimits {
  std::chrono::milliseconds between{50};      ///< two writes
  std::chrono::milliseconds again{1000};      ///< of one pod, twice as much each time
  std::chrono::milliseconds at_most{30'000};  ///< and no more
};

class ConditionWriter {
 public:
  struct Told {
    ObjectPath object;  ///< a pod, which waits, or a PodGroup
    std::string uid;
    std::string message;
    scheduler::GangOutcome outcome = scheduler::GangOutcome::kUnschedulable;
    std::string reason = "Unschedulable";  ///< of a pod

    bool operator==(const Told&) const = default;
  };

  explicit ConditionWriter(Api& api, ConditionLimits limits = {});
  ConditionWriter(const ConditionWriter&) = delete;
  ConditionWriter& operator=(const ConditionWriter&) = delete;
  ~ConditionWriter();

  /// All that there is to say now; what is not among it is forgotten.
  void update(std::vector<Told> all);
  void forget(const std::string& uid);
  /// Whether nothing has been said of it yet.
  bool is_news(const std::string& uid) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    Told wanted;
    std::optional<Told> written;
    Clock::time_point at{};
    std::chrono::milliseconds pause{0};  ///< since then, before it is written again
  };

  enum class Done { kWritten, kStoodThere, kFailed };

  void run(const std::stop_token& stop);
  Done write(const Told& told, bool is_first);
  Done write_group(const Told& told);
  /// Of those that are due the one that was written longest ago; nullptr when there is none.
  Entry* next(Clock::time_point now);

  Api& api_;
  const ConditionLimits limits_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::unordered_map<std::string, Entry> entries_;  ///< by uid
  std::vector<std::string> due_;                    ///< uids, to be written from the end
  std::jthread thread_;
};

}  // namespace drover::kube

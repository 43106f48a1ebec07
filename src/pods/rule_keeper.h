#pragma once

// Makes the queues and quotas of the cluster those that this daemon was given, and keeps them so. Objects
// that somebody else has made are left alone. Thread safe; works on a thread of its own.

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "base/result.h"
#include "kube/client/api.h"
#include "placement/queues.h"
#include "pods/rule_objects.h"

namespace drover::pods {

struct RuleKeeperOptions {
  std::string journal;
  NameSpaceOf name_space_of;                         ///< called on the keeper's thread; may block
  std::function<void(const std::string&)> log;       ///< what cannot be kept, once until it is another
  std::chrono::milliseconds again{5000};             ///< what failed is tried again after it
  std::chrono::milliseconds look_again{2 * 60'000};  ///< what somebody has changed is put right after it
};

class RuleKeeper {
 public:
  /// `api` outlives it. Does nothing before keep().
  RuleKeeper(kube::Api& api, RuleKeeperOptions options);
  /// Its end takes at most one request.
  ~RuleKeeper() = default;
  RuleKeeper(const RuleKeeper&) = delete;
  RuleKeeper& operator=(const RuleKeeper&) = delete;

  /// From now on these, and no others of this journal.
  void keep(placement::Rules rules);
  /// What is not as it should be; nothing when all is.
  std::optional<Error> trouble() const;

 private:
  void run(const std::stop_token& stop);
  /// The first thing that could not be done; the others are.
  Status apply(const placement::Rules& rules);
  Status put(const RuleObject& rule);
  /// Takes away those of this journal that are not among the paths.
  Status tidy(const kube::Resource& resource, const std::set<std::string>& names);

  kube::Api& api_;
  const RuleKeeperOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::optional<placement::Rules> rules_;
  bool due_ = false;
  std::optional<Error> trouble_;
  std::jthread thread_;
};

}  // namespace drover::pods

#pragma once

// Follows all that decides where pods may run, and tells a scheduler of it. What an API server does not serve
// yet, such as kinds of other schedulers, is looked for again and again. Thread safe.

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/log_once.h"
#include "kube/client/api.h"
#include "kube/client/informer.h"
#include "kube/client/server_version.h"
#include "kube/scheduling/cluster_kinds.h"
#include "kube/scheduling/loop.h"

namespace drover::kube {

class ClusterWatch {
 public:
  /// `api` and `loop` outlive it. `warn` hears, from any thread, what cannot be read or reached.
  ClusterWatch(Api& api, SchedulingLoop& loop, const ServerVersion& version,
               std::function<void(const std::string&)> warn);
  ClusterWatch(const ClusterWatch&) = delete;
  ClusterWatch& operator=(const ClusterWatch&) = delete;

  /// Until the loop has been told of all that there is.
  Status wait_until_listed(std::chrono::milliseconds patience) const;

 private:
  void follow(const Resource& resource, std::function<Result<ObjectChange>(const nlohmann::json&)> read);
  void follow_if_served();
  void follow_sharing(const Resource& resource, std::map<std::string, Object>& objects);
  void read_absent_groups();
  void write_use();
  void run(const std::stop_token& stop);

  Api& api_;
  SchedulingLoop& loop_;
  const std::function<void(const std::string&)> warn_;
  LogOnce groups_trouble_{warn_}, use_trouble_{warn_};  ///< of the thread
  std::mutex sharing_mutex_;                            ///< of the next one
  SharingObjects sharing_;
  std::vector<ClusterKind> not_served_;  ///< of the constructor, and then of the thread
  std::map<std::string, std::chrono::steady_clock::time_point>
      asked_;                 ///< for objects of gangs; of the thread
  mutable std::mutex mutex_;  ///< of what follows
  std::vector<std::unique_ptr<Informer<ObjectChange>>> informers_;
  std::vector<std::unique_ptr<Informer<>>> sharing_informers_;
  std::jthread thread_;
};

}  // namespace drover::kube

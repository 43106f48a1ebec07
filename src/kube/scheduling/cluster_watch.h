#pragma once

// Follows all that decides where pods may run, and tells a scheduler of it. Thread safe.

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kube/client/api.h"
#include "kube/client/informer.h"
#include "kube/client/server_version.h"
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
  /// `read` makes the change of an object that is there; `remove` of one that is gone.
  using Read = std::function<Result<SchedulingLoop::Change>(const nlohmann::json& object)>;
  using Remove = std::function<SchedulingLoop::Change(const nlohmann::json& object)>;
  void follow(const Resource& resource, Read read, Remove remove);

  Api& api_;
  SchedulingLoop& loop_;
  const std::function<void(const std::string&)> warn_;
  std::vector<std::unique_ptr<Informer>> informers_;
};

}  // namespace drover::kube

#pragma once

// Joins definitions that are objects of a cluster with the daemon that runs them: each is asked for as its
// namespace's user would ask, and whatever happens to it is looked at. Owned by the main thread.

#include <memory>

#include "daemon.h"
#include "kube/client/api.h"
#include "objects/keeper.h"
#include "pods/pod_writer.h"

namespace drover {

class ClusterObjects {
 public:
  /// After the daemon's listen(). All outlive it.
  ClusterObjects(kube::Api& api, Daemon& daemon, pods::PodSettings settings);

 private:
  Result<objects::Answer> ask(const User& user, const objects::Call& call, const std::stop_token& stop);

  Daemon& daemon_;
  const pods::PodSettings settings_;
  objects::Keeper keeper_;
  std::shared_ptr<void> notices_;  ///< of the daemon; goes first
};

}  // namespace drover

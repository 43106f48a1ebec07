#pragma once

// The network of one container in bridge mode, as its shim makes it: a network namespace with loopback, the
// machine's ports forwarded into it, and a way out through slirp4netns, a program that carries packets
// without a change to the machine's own addresses, routes or firewall. All of it ends with the shim, however
// that ends: the namespace is named only inside of the shim's own mount namespace. Not thread safe.

#include <string>

#include "base/fd.h"
#include "base/files.h"
#include "base/result.h"
#include "container/network/network_plan.h"

namespace drover::container {

class TaskNetwork {
 public:
  /// Names the namespace `name` in the task's folder, for the runtime. The caller has a mount namespace of
  /// its own and one thread. kConflict when a port is taken.
  static Result<TaskNetwork> make(const NetworkPlan& plan, const Directory& task, const std::string& name);
  TaskNetwork(TaskNetwork&&) = default;
  TaskNetwork& operator=(TaskNetwork&&) = delete;
  ~TaskNetwork();

  /// Why nobody outside can be reached from inside; "" when all is well.
  const std::string& shortcoming() const { return shortcoming_; }
  /// Pidfd of the process that carries what comes to its ports; -1 when there are none.
  int forwarder() const { return forwarder_.get(); }

 private:
  TaskNetwork() = default;
  void find_way_out(const std::string& network);

  UniqueFd forwarder_;  ///< pidfd
  UniqueFd gateway_;    ///< pidfd of slirp4netns
  UniqueFd lifeline_;   ///< slirp4netns ends when this closes
  std::string shortcoming_;
};

}  // namespace drover::container

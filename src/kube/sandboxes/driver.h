#pragma once

// The node's CSI driver of sandboxes: volumes that a pod names in its own spec (ephemeral inline volumes),
// and that stay on the node when the pod has ended (store.h). A sandbox is a plain folder and no mount, which
// a kubelet takes as well: so the driver needs no rights over the node's mounts.

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "kube/client/api.h"
#include "kube/sandboxes/store.h"

namespace drover::kube {

struct SandboxDriverOptions {
  std::string node;  ///< the Node's name
  std::string kubelet_folder = "/var/lib/kubelet";
  std::string version;                                    ///< of this program
  std::function<void(const std::string& sentence)> warn;  ///< from any thread
};

/// Calls of the kubelet come on threads of gRPC's.
class SandboxDriver {
 public:
  /// `store` outlives it.
  SandboxDriver(SandboxDriverOptions options, SandboxStore& store);
  /// Waits for calls that are under way.
  ~SandboxDriver();

  /// Sees to it that the kubelet finds it: now and then, by one thread.
  Status keep();
  /// Whether the kubelet has taken it.
  bool is_registered() const { return registered_; }

 private:
  struct Parts;

  std::atomic<bool> registered_ = false;
  std::unique_ptr<Parts> parts_;
};

/// Sees to it that the Node's label says whether its kubelet has the driver. Needs the right to get nodes,
/// and to patch the node whose label is to change. Blocks.
Status label_sandboxes(Api& api, const std::string& node, bool served);

}  // namespace drover::kube

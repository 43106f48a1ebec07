#pragma once

// Which GPUs a scheduler has chosen for the pod that the kubelet wants devices for. Its question names no
// pod, and a kubelet that has just started asks in an order that nobody knows. But it takes its pods in one
// by one, and tells of each from the moment on that it takes it in: the pod is the one that it tells of and
// that has not all of its devices. A pod that it does not tell of yet is never taken for the one that asks.
//
// The choice is an annotation of the pod, which its owner can write too. It is no more than a preference
// among what the kubelet would give anyway, and counts for no more GPUs than the pod asks for. Pure.

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "kube/kubelet/pod_resources.h"

namespace drover::kube {

/// A pod of this node, as far as devices of limits go.
struct NodePod {
  PodName name;
  std::string uid;
  std::uint64_t version = 0;      ///< the server's, by which pods are ordered: that with which it was bound
  bool waits = false;             ///< to be started
  bool ended = false;             ///< or is about to
  std::vector<std::string> gpus;  ///< were chosen for it: UUIDs, sorted; empty: none, or nonsense
  /// What one of its containers asks for, by resource.
  struct Container {
    std::map<std::string, int> devices;
    bool starts_others = false;  ///< has ended when the others run, which get its devices
  };
  std::vector<Container> containers;

  bool operator==(const NodePod&) const = default;
};
Result<NodePod> read_node_pod(const nlohmann::json& pod);

struct DeviceQuestion {
  std::string resource;
  int size = 0;
};

struct DeviceHint {
  bool is_known = false;          ///< a pod is known that may be the one
  std::vector<std::string> take;  ///< the devices are to be among these; empty: nobody chose any
  std::set<std::string> leave;    ///< to others that wait
};

/// An annotation that is to be as it is not.
struct ChoiceCorrection {
  PodName pod;
  std::string uid;
  std::vector<std::string> gpus;  ///< sorted

  bool operator==(const ChoiceCorrection&) const = default;
};

class ChosenGpus {
 public:
  /// All pods of the node, and what the kubelet tells now.
  ChosenGpus(std::vector<NodePod> pods, PodResources told);

  DeviceHint hint(const DeviceQuestion& question) const;
  /// What pods have of these GPUs is the truth. Those come first that wait and whose GPUs another has got:
  /// theirs are then those of the other.
  std::vector<ChoiceCorrection> corrections(const std::set<std::string>& gpus) const;

 private:
  struct Held {
    std::set<std::string> devices;          ///< of all resources
    std::map<std::string, int> containers;  ///< that have some, by resource
  };
  const Held& held_by(const NodePod& pod) const;
  /// Whether a container that asks for that many may have none yet.
  bool may_ask(const NodePod& pod, const DeviceQuestion& question) const;
  bool has_all(const NodePod& pod) const;
  std::vector<std::string> choice_of(const NodePod& pod) const;

  std::vector<NodePod> pods_;  ///< as they were bound
  std::set<PodName> taken_in_;
  std::map<PodName, Held> held_;
};

/// Of devices that are free, those that the kubelet should choose among for `size` of them, `must` included:
/// as the hint says where that leaves enough.
std::vector<std::string> narrowed(const std::vector<std::string>& free, const std::vector<std::string>& must,
                                  int size, const DeviceHint& hint);

}  // namespace drover::kube

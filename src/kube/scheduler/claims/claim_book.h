#pragma once

// The claims of pods, and the devices for them, as a scheduler of pods sees it: where a pod's claims could be
// had at all, which devices it gets on a node now, and which GPUs devices are. One thread at a time.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "gpu/device.h"
#include "kube/scheduler/claims/allocate.h"
#include "kube/scheduler/claims/device_pools.h"
#include "kube/scheduler/claims/extended_resources.h"
#include "kube/scheduler/cluster.h"
#include "kube/scheduler/pod.h"
#include "placement/decision.h"
#include "placement/request.h"

namespace drover::kube::scheduler {

/// What is to be written into a claim before its pod is bound.
struct ClaimDecision {
  std::string uid;
  std::string name_space;
  std::string name;
  std::optional<ClaimAllocation> allocation;  ///< nullopt: it has one, and the pod is only to be named in it
  /// It is to be made first, and told to the pod: then `uid` is one of ours, and it has no name yet.
  std::optional<ExtendedResourceClaim> made = {};
  std::shared_ptr<const std::string> as_read = {};  ///< as in ResourceClaim
};

class ClaimBook {
 public:
  using Claims = std::vector<const ResourceClaim*>;

  explicit ClaimBook(ServerVersion version = kNewestKnown) : pools_(version), bare_(version) {}

  void put_slice(ResourceSlice slice);
  void remove_slice(const std::string& name);
  void put_class(const DeviceClass& device_class);
  void remove_class(const std::string& name);
  void put_taint_rule(const DeviceTaintRule& rule);
  void remove_taint_rule(const std::string& name);
  void put_claim(ResourceClaim claim);
  void remove_claim(const std::string& uid);
  /// The node has come or gone, or is another than before.
  void note_node(const std::string& name);

  const DevicePools& pools() const { return pools_; }

  /// kNotFound, in words, for one that is not there yet.
  Result<Claims> claims_of(const Pod& pod) const;
  /// Those that were made for the pod's resources. What is in another namespace is not, whatever it says.
  Claims made_for(const Pod& pod) const;
  struct TaintedPod {
    std::string name_space, uid;
    Taint taint;  ///< one of them
  };
  /// The pods for whose resources claims have devices with a taint that ends who has them (NoExecute).
  std::vector<TaintedPod> ended_by_taints() const;
  /// Whether some node might give it resources by claim.
  bool may_need_claim(const PodTemplate& pod) const;
  /// The claim, as it would be made for the pod's resources that this node gives so; nullopt when there are
  /// none.
  std::optional<ExtendedResourceClaim> claim_for(const PodTemplate& pod, const Node& node) const;

  /// What is to be had where.
  struct Needs {
    /// Without the nodes where it could not be had even if nobody had any device, or whose devices are on
    /// other nodes already. The same pointer as long as nothing has changed.
    std::shared_ptr<const placement::Eligibility> nodes;
    int gpus = 0;                 ///< of claims without an allocation, beside those by limits
    placement::Share share = {};  ///< of each of these, when all are to be given so
  };
  struct Wanted {
    const Claims& claims;
    std::shared_ptr<const PodTemplate> by_limits;  ///< nullptr when may_need_claim() says no
    std::string gpu_resource;                      ///< GPUs by limits
    bool admin_access = false;
  };
  /// Errors are those of allocate().
  Result<Needs> narrow(const std::shared_ptr<const placement::Eligibility>& nodes, const Cluster& cluster,
                       const Wanted& wanted);
  /// What the claims that have no allocation get on this node now, these GPUs if they may.
  Result<Allocated> allocate(const Node& node, const Claims& claims, const std::vector<std::string>& gpus,
                             bool admin_access);
  /// By node: why allocate() gave such claims nothing, since look_again(). Stays what it is until then.
  using Refusals = std::unordered_map<std::string, std::string>;
  const Refusals& refusals(const Claims& claims, bool admin_access) { return refused(claims, admin_access); }
  /// Devices may have been given back: where claims got nothing, they may get something now.
  void look_again() { refused_.clear(); }

  /// UUIDs of the GPUs among its devices.
  std::vector<std::string> gpus_of(const ClaimAllocation& allocation) const;
  /// The same GPUs, with how much of each it has. Of the memory that nothing is said of: 0.
  std::vector<placement::Grant> grants_of(const ClaimAllocation& allocation) const;
  /// Where the devices of its allocation are, as far as they are GPUs that are published for one node.
  std::set<std::string> nodes_of(const ResourceClaim& claim) const;
  /// Whether some claim has the published GPU, or a part of it.
  bool is_claimed(const std::string& node, const std::string& gpu) const;
  /// Where the GPU is; "" when it is not published.
  std::string node_of(const std::string& gpu) const;
  /// For whose devices it is; "" when it is not known, or for several.
  std::string node_of_slice(const std::string& name) const;
  /// Those that are published for the node: nothing is known of how they are joined.
  const std::vector<gpu::Device>* published(const std::string& node) const;

 private:
  using ClaimSpecs = std::vector<std::shared_ptr<const ClaimSpec>>;
  /// What could be had on a node, if nobody had anything.
  struct Verdict {
    std::uint64_t changes = 0;  ///< as of then
    std::string refusal;        ///< "": it could
    int made_gpus = 0;          ///< of a claim that is made there for limits, beyond what limits count
  };
  struct Known {
    ClaimSpecs specs;
    std::shared_ptr<const PodTemplate> by_limits;
    std::shared_ptr<const placement::Eligibility> nodes;
    Needs needs;
    std::uint64_t changes = 0;
    std::unordered_map<std::string, Verdict> verdicts;  ///< by node
  };
  class Narrowing;

  Refusals& refused(const Claims& claims, bool admin_access);
  template <typename Change>
  void change_devices(const std::string& node, const Change& change);
  bool holds(const Verdict& verdict, const std::string& node) const;
  void note_gpus(const ResourceSlice& slice);
  void forget_gpus(const std::string& slice);

  DevicePools pools_;
  DevicePools bare_;  ///< of which nobody has any
  std::uint64_t changes_ = 1;
  std::uint64_t changes_everywhere_ = 1;  ///< the last of those that are not of one node
  std::unordered_map<std::string, std::uint64_t> node_changes_;  ///< the last one of each
  std::map<std::string, std::string, std::less<>> node_of_slice_;
  std::map<std::string, std::map<std::string, std::vector<std::pair<DeviceId, gpu::Device>>>>
      gpus_;  ///< by node and slice
  std::map<std::string, std::vector<gpu::Device>, std::less<>> published_;
  struct PublishedGpu {
    std::string uuid;
    std::shared_ptr<const DeviceKind> kind;
    std::string node;
  };
  std::map<DeviceId, PublishedGpu> by_device_;
  struct Place {
    DeviceId device;
    std::string node;
  };
  std::map<std::string, Place, std::less<>> places_;  ///< by UUID
  using Owner = std::pair<std::string, std::string>;  ///< namespace and uid of a pod
  static Owner owner_of(const ResourceClaim& claim) { return {claim.name_space, claim.owner_uid}; }
  std::map<Owner, std::set<std::string>> made_;  ///< uids of claims
  std::map<std::tuple<std::vector<const ClaimSpec*>, const PodTemplate*, bool>, Known> known_;
  std::map<std::pair<ClaimSpecs, bool>, Refusals> refused_;  ///< by what those claims ask for
};

}  // namespace drover::kube::scheduler

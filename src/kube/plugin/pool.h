#pragma once

// The node's GPUs as all resources of the device plugin share them, and claims with them: what one has taken,
// the other cannot take, at any moment. Thread safe.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "gpu/device.h"
#include "kube/plugin/allocation.h"
#include "kube/plugin/chosen_gpus.h"
#include "kube/plugin/gpu_sets.h"
#include "kube/plugin/preferred.h"
#include "kube/plugin/resources.h"
#include "kube/plugin/usage.h"

namespace drover::kube {

/// What is known of the node at one time.
struct PoolFacts {
  gpu::Inventory inventory;
  /// By UUID, of those GPUs that have one; of MIG devices also those of the part.
  std::map<std::string, std::vector<gpu::DeviceNode>, std::less<>> nodes;
  ResourceNames resources;                      ///< of MIG devices
  std::map<std::string, std::string> troubles;  ///< by UUID: why nobody may be given it now
  NodeParts parts;
};

/// A container is about to get the replica with this id, or, where `grant` is null, to start with what it was
/// given, perhaps long ago.
using ShareReplica =
    std::function<Status(const ReplicaShare& share, const std::string& id, ContainerGrant* grant)>;

class Pool {
 public:
  /// `claims`: whether there are claims of the GPUs too. `used` is called in whichever call changes
  /// holders(), before that returns: what limits have just got, claims are to know at once. May be absent, as
  /// `hint`, which is asked when the kubelet chooses among whole GPUs; it may block, and tell what it saw().
  /// So may `keep_set`, which is called before a container is made with a set of GPUs whose CDI device it is
  /// told by; without it there is none. And so may `share`, by which those who share a GPU are held to their
  /// replicas; without it nobody can be.
  explicit Pool(PluginConfig config, bool claims = true, std::function<void()> used = {},
                std::function<DeviceHint(const DeviceQuestion&)> hint = {},
                std::function<Status(const GpuSet&)> keep_set = {}, ShareReplica share = {});

  void update(PoolFacts facts);
  /// What the kubelet tells of its containers; `asked` is when it was asked. Until it is called nobody is
  /// given anything.
  void saw(const std::vector<ContainerUse>& containers, Usage::Clock::time_point asked);

  /// Claims have these GPUs, by UUID, and no others. kConflict, and all stays as it was, when something else
  /// has one that claims have not had so far; kUnavailable when it is not known yet who has what.
  Status claim(std::set<std::string> uuids);
  /// The same as a fact that was so before.
  void found_claimed(std::set<std::string> uuids);
  /// Which resources' devices are in use.
  Holders holders() const;

  std::vector<OfferedResource> offers() const;
  /// What whoever has the replica of the resource is held to; nullopt for what nobody is.
  std::optional<ReplicaShare> share_of(const std::string& resource, const std::string& id) const;
  /// The devices of one resource, empty when there is no such one, and the number of this state.
  struct Offer {
    std::uint64_t version = 0;
    std::vector<OfferedDevice> devices;
    std::uint64_t left = 0;  ///< how often devices became nobody's
  };
  /// Waits up to `patience` for a state behind `version`, and answers with the newest.
  Offer wait(const std::string& resource, std::uint64_t version, std::chrono::milliseconds patience) const;

  /// What is not said to be somebody's comes first, also when the kubelet takes it for free; then what a
  /// scheduler has chosen.
  std::vector<std::string> prefer(const std::string& resource, const std::vector<std::string>& available,
                                  const std::vector<std::string>& must_include, int size) const;

  /// What one container gets. kInvalid for a device that the resource does not have; kConflict for one that
  /// is unhealthy, or in use under another name.
  Result<ContainerGrant> allocate(const std::string& resource, const std::vector<std::string>& ids);

  /// Whether start() is to be asked: a GPU may be somebody's under another name, or by a claim, or what the
  /// container is told by may be gone.
  bool is_asked_at_start() const { return has_rivals_ || keep_set_ != nullptr || share_ != nullptr; }
  /// A container is about to start with what it was given, perhaps long ago and by a kubelet that has been
  /// started again since: it tells of such a container only later. kConflict when somebody else has one of
  /// them by now.
  Status start(const std::string& resource, const std::vector<std::string>& ids);

 private:
  class Change;
  void renew();  ///< with the mutex held
  bool is_of_whole_gpus(const std::string& resource) const;
  std::vector<std::string> unused(const std::vector<std::string>& available, int size) const;
  Result<GrantedGpu> gpu_of(const OfferedResource& resource, const std::string& id) const;
  Result<ContainerGrant> take(const std::string& resource, const std::vector<std::string>& ids);
  Status take_again(const std::string& resource, const std::vector<std::string>& ids);
  Status keep_set(const std::vector<std::string>& ids) const;
  Status share(const std::string& resource, const std::vector<std::string>& ids, ContainerGrant* grant) const;

  const PluginConfig config_;
  const bool has_rivals_;
  const std::function<void()> used_;
  const std::function<DeviceHint(const DeviceQuestion&)> hint_;
  const std::function<Status(const GpuSet&)> keep_set_;
  const ShareReplica share_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  PoolFacts facts_;
  std::shared_ptr<const PreferredAllocation> preferred_ =
      std::make_shared<const PreferredAllocation>(gpu::Inventory{});
  Usage usage_;
  bool usage_known_ = false;
  std::set<std::string> claimed_;
  std::vector<OfferedResource> offers_;
  std::uint64_t version_ = 0;
  std::uint64_t left_ = 0;
  std::uint64_t grants_ = 0;
};

}  // namespace drover::kube

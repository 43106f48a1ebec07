#pragma once

// All devices of a cluster, who has them, and which of them a node can have. Kept up to date object by
// object, as watches tell of them and in any order; what is put again replaces what was there. Claims that
// are about to be allocated are put with their allocation before anybody else is asked for.
//
// A pool counts as Kubernetes has it: as long as not all of its slices of the newest generation are there,
// nothing of it is given. One thread at a time, also for const calls.

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kube/client/server_version.h"
#include "kube/scheduler/claims/claim.h"
#include "kube/scheduler/claims/selectors.h"
#include "kube/scheduler/claims/slice.h"
#include "kube/scheduler/pool.h"

namespace drover::kube::scheduler {

/// Before it a cluster has to be told by hand that resources of pods may be given by claims.
inline constexpr ServerVersion kWithExtendedResources{1, 36};

/// What claims have of a device; those with admin access have nothing.
struct DeviceUse {
  int whole = 0;   ///< claims that have it for themselves
  int shares = 0;  ///< of a shared one
  Consumed consumed = {};

  bool none() const { return whole == 0 && shares == 0; }
};

struct PoolKey {
  std::string driver;
  std::string name;

  auto operator<=>(const PoolKey&) const = default;
};

/// A pool as one node sees it.
struct NodePool {
  const PoolKey* key = nullptr;
  bool incomplete = false;                           ///< its driver is about to publish the rest
  std::string invalid = {};                          ///< why nothing of it can be given; "": it can
  std::vector<const ResourceSlice*> slices = {};     ///< with devices for the node, by name
  std::vector<const ResourceSlice*> elsewhere = {};  ///< whose devices consume the same counters
  std::map<std::string, Counters, std::less<>> counters = {};
  /// By the names of devices; devices that nobody has are not in it.
  const std::map<std::string, DeviceUse, std::less<>>* uses = nullptr;

  bool usable() const { return !incomplete && invalid.empty(); }
};

class DevicePools {
 public:
  explicit DevicePools(ServerVersion version = kNewestKnown) : version_(version) {}

  void put_slice(ResourceSlice slice);
  void remove_slice(std::string_view name);
  void put_claim(ResourceClaim claim);
  void remove_claim(std::string_view uid);
  void put_class(DeviceClass device_class);
  void remove_class(std::string_view name);
  void put_taint_rule(DeviceTaintRule rule);
  void remove_taint_rule(std::string_view name);

  /// nullptr when there is none.
  const ResourceClaim* claim(std::string_view uid) const;
  const ResourceClaim* claim(std::string_view name_space, std::string_view name) const;
  const DeviceClass* device_class(std::string_view name) const;
  /// What a resource of pods stands for: of several classes the newest. None before kWithExtendedResources.
  const DeviceClass* class_for_resource(std::string_view resource) const;

  /// In the order in which Kubernetes tries them.
  std::vector<NodePool> pools_of(const Node& node) const;
  /// With those of rules.
  Taints taints_of(const ResourceSlice& slice, const Device& device) const;

  /// Whether some claim has it, or a part of it.
  bool is_in_use(const DeviceId& id) const;
  /// None of a device that is not published.
  Taints taints_of(const DeviceId& id) const;
  ServerVersion version() const { return version_; }
  Selectors& selectors() const { return selectors_; }

 private:
  using Named = std::pair<std::string, std::string>;
  using Slice = std::shared_ptr<const ResourceSlice>;
  struct PoolState {
    std::map<std::string, Slice, std::less<>> slices;  ///< by name
    std::map<std::string, DeviceUse, std::less<>> uses;
  };
  using Pools = std::map<PoolKey, PoolState>;

  void share(Device& device);
  void count(const ResourceClaim& claim, int sign);
  void drop_if_empty(Pools::iterator pool);
  std::optional<NodePool> seen_from(const Node& node, const Pools::value_type& pool) const;

  ServerVersion version_;
  Pools pools_;
  std::map<std::string, PoolKey, std::less<>> pool_of_slice_;
  std::map<std::string, std::set<PoolKey>, std::less<>> pools_by_node_;
  std::map<PoolKey, int> pools_of_many_;  ///< how many slices they have that name no node
  std::map<std::string, std::shared_ptr<const ResourceClaim>, std::less<>> claims_;  ///< by uid
  std::map<Named, std::string> claim_uids_;
  std::map<std::string, DeviceClass, std::less<>> classes_;
  std::map<std::string, DeviceTaintRule, std::less<>> taint_rules_;
  Pool<DeviceAttribute> attributes_;
  Pool<DeviceCapacity> capacities_;
  Pool<DeviceKind> kinds_;
  Pool<Taints> taints_;
  Pool<CounterSets> consumptions_;
  Pool<NodeChoice> choices_;
  Pool<ClaimSpec> specs_;
  mutable Selectors selectors_;
};

}  // namespace drover::kube::scheduler

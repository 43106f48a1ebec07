#pragma once

// The devices that one node can have, and who takes them while claims are tried: what is free of them, of
// their counters and of their capacities. Pure; the book that it looks at outlives it and does not change.

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kube/scheduler/claims/device_pools.h"

namespace drover::kube::scheduler {

struct Candidate {
  std::size_t pool = 0;
  const ResourceSlice* slice = nullptr;
  const Device* device = nullptr;
  bool here = true;  ///< otherwise it is of other nodes, and only its slice is of this one
  Taints taints = {};
  const DeviceUse* use = nullptr;  ///< by claims that are allocated; nullptr: nobody has it

  std::vector<std::size_t> claims = {};  ///< that take it now, by number
  std::vector<const Amounts*> shares = {};

  const DeviceKind& kind() const { return *device->kind; }
  DeviceId id() const { return {slice->driver, slice->pool, device->name}; }
  bool is_shared_already() const { return !shares.empty() || (use != nullptr && use->shares > 0); }
};

class NodeDevices {
 public:
  NodeDevices(const DevicePools& pools, const Node& node);

  /// Of pools that can be used, in Kubernetes' order.
  const std::vector<Candidate>& candidates() const { return candidates_; }
  const std::vector<NodePool>& pools() const { return pools_; }

  /// Whether a claim could have one for itself, or beside others if it is shared, as far as that is for whole
  /// devices to say.
  bool is_free(std::size_t candidate, std::size_t claim, bool admin) const;
  /// False, and nothing changed, when it is taken or lacks counters or capacity. `share` is what is taken of
  /// its capacities, nullptr when that does not matter; it stays where it is until given back.
  bool take(std::size_t candidate, std::size_t claim, bool admin, const Amounts* share);
  /// In the opposite order.
  void give_back(std::size_t candidate);

 private:
  struct CountersLeft {
    std::map<std::string, Counters, std::less<>> sets;
    bool overdrawn = false;  ///< by what is allocated: then nothing more is given that counts
  };

  CountersLeft& counters_of(std::size_t pool);
  bool take_counters(const Candidate& candidate);
  bool has_left(const Candidate& candidate, const Amounts& share) const;

  std::vector<NodePool> pools_;
  std::vector<Candidate> candidates_;
  std::vector<std::optional<CountersLeft>> counters_;
  std::vector<bool> counted_;  ///< of what is taken, in order: whether it took counters
};

}  // namespace drover::kube::scheduler

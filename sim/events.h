#pragma once

// Event sets: which GPUs and kinds of events a client waits for. Thread safe; a set may be freed while
// another thread waits on it.

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "gpu/nvml_abi.h"
#include "sim/machine.h"

namespace drover::sim {

/// An XID of one GPU.
struct XidEvent {
  nvmlDevice_t device = nullptr;
  Xid xid;
};

class EventSet {
 public:
  void add(const nvmlDevice_st& device, unsigned long long types);

  /// The next entry of a GPU's `xid` list that this set has not been told; none when all are told.
  std::optional<XidEvent> next(const Machine& machine);

 private:
  bool receives_xids(std::size_t position) const;

  std::mutex mutex_;
  // By position in the profile.
  std::map<std::size_t, unsigned long long> types_;    ///< that it is registered for
  std::map<std::size_t, std::vector<Xid>> delivered_;  ///< of the GPU's list, what concerns this set
};

class EventSets {
 public:
  nvmlEventSet_t create();
  bool free(nvmlEventSet_t handle);
  /// Null when the handle is none of ours.
  std::shared_ptr<EventSet> find(nvmlEventSet_t handle);

 private:
  std::mutex mutex_;
  std::map<nvmlEventSet_t, std::shared_ptr<EventSet>> sets_;
};

}  // namespace drover::sim

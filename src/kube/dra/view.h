#pragma once

// What the driver is told of the node's GPUs: who is there, how they are joined, and what ails them. Values.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/units.h"
#include "gpu/device.h"
#include "gpu/mig.h"

namespace drover::kube::dra {

/// What a device taint does (KEP-5055). `None` tells, and keeps nobody away.
enum class Effect { kNone, kNoSchedule, kNoExecute };

/// What ails a GPU. It becomes a device taint.
struct Trouble {
  std::string key;    ///< a label's key: "gpu.nvidia.com/xid"
  std::string value;  ///< a label's value: "79"; may be empty
  Effect effect = Effect::kNoSchedule;
  TimePoint since;      ///< when it was first seen
  std::string message;  ///< for people, in the health of the pod's devices

  bool operator==(const Trouble&) const = default;
};

struct View {
  /// A GPU that is lost stays in it, with what was known of it: pods may still have it.
  gpu::Inventory inventory;
  std::map<std::string, std::string> pcie_roots;         ///< by UUID: "pci0000:15"; absent when not known
  std::map<std::string, std::vector<Trouble>> troubles;  ///< by UUID, of GPUs and of MIG devices
  std::map<std::string, gpu::MigGpu> mig;                ///< by UUID of the GPU, of those in MIG mode
  std::set<gpu::MigPart> made;                           ///< instances that the driver itself has made

  bool operator==(const View&) const = default;
};

/// What keeps the GPU or MIG device of this UUID from being given: its first trouble that does, or "".
std::string hindrance_of(const View& view, const std::string& uuid);

}  // namespace drover::kube::dra

#pragma once

// Pods that another scheduler binds, and that wait for their turn in our queues before it may: they have a
// scheduling gate that we take off. Pure.

#include <chrono>
#include <string>

#include "base/units.h"

namespace drover::kube::scheduler {

inline constexpr const char* kQueueGate = "drover.dev/queue";
/// When the gate was taken off, and where there was room then: written by us alone.
inline constexpr const char* kReleasedAnnotation = "drover.dev/released";
inline constexpr const char* kExpectedNodeAnnotation = "drover.dev/expected-node";
/// So long room is kept for a pod after its gate was taken off.
inline constexpr std::chrono::seconds kReleaseGrace{60};

/// Of a pod with that gate, or from which it was taken off.
struct Release {
  bool gated = false;
  TimePoint at{};                  ///< the epoch: not yet
  std::string expected_node = {};  ///< "": not known

  bool queued() const { return gated || at != TimePoint{}; }
  bool operator==(const Release&) const = default;
};

}  // namespace drover::kube::scheduler

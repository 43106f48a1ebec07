#pragma once

// What a pod is told that the scheduler ends to make room for another: the message of its condition
// DisruptionTarget, written and read again. Pure.

#include <optional>
#include <string>
#include <string_view>

namespace drover::kube::scheduler {

/// The reason of the condition.
inline constexpr const char* kPreempted = "PreemptionByScheduler";

struct Preemption {
  bool lent = false;  ///< its room was lent by the queue of the other, which has no higher priority
  std::string pod;    ///< the other, of the same namespace; "": the pod is not to know

  bool operator==(const Preemption&) const = default;
};

/// "ended by the scheduler to make room for the pod 'train-0', which has a higher priority".
std::string to_string(const Preemption& preemption);
/// Only what to_string() writes: others may write conditions too, and their words are no such message.
std::optional<Preemption> read_preemption(std::string_view message);

}  // namespace drover::kube::scheduler

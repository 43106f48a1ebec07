#pragma once

// What the devices of a claim must have in common, or must not, while they are chosen one by one. Pure.

#include <cstddef>
#include <vector>

#include "kube/scheduler/claims/claim.h"

namespace drover::kube::scheduler {

/// A list of values stands for each of them: devices match that have one in common with all others.
class ConstraintState {
 public:
  explicit ConstraintState(const AttributeConstraint& constraint) : constraint_(&constraint) {}

  bool concerns(const DeviceRequest& request, const DeviceWish& wish) const;
  /// False, and nothing changed, where the device does not go with those that were added.
  bool add(const DeviceKind& kind);
  /// The one that was added last.
  void remove() { attributes_.pop_back(); }

  const AttributeConstraint& constraint() const { return *constraint_; }

 private:
  const AttributeConstraint* constraint_;
  std::vector<const cel::Attribute*> attributes_;
};

}  // namespace drover::kube::scheduler

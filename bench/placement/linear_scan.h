#pragma once

// The peer that the cluster's index is measured against: the same policy, and every node looked at for every
// decision.

#include <optional>
#include <vector>

#include "placement/node_table.h"
#include "placement/policies.h"

namespace drover::bench {

class LinearScan {
 public:
  explicit LinearScan(const std::vector<placement::Node>& nodes);

  /// Slot of the best node.
  std::optional<std::size_t> place(const placement::Request& request) const;
  void allocate(const placement::Request& request, const placement::Decision& decision);

 private:
  placement::NodeTable nodes_;
  placement::PolicyContext context_;
};

}  // namespace drover::bench

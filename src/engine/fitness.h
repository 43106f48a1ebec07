#pragma once

// What people hear of GPUs that become unfit, or fit again: on one machine, and on the nodes of a cluster.
// Pure.

#include <string>
#include <string_view>
#include <vector>

#include "gpu/device.h"
#include "placement/node.h"

namespace drover::engine {

struct FitnessNews {
  bool is_fit = false;
  std::string message;

  bool operator==(const FitnessNews&) const = default;
};

/// Of each GPU of a machine that was not there `before`, or was fit or unfit for another reason; in their
/// order. `node`: the machine's name, where it needs one.
std::vector<FitnessNews> fitness_news(const std::vector<gpu::Device>& before,
                                      const std::vector<gpu::Device>& now, std::string_view node = "");

/// The same of all nodes of a cluster, in the order of `now`. Nothing is said of a node that was not there
/// before, or none of whose GPUs were known: of a thousand that come at once nobody wants to hear.
std::vector<FitnessNews> fitness_news(const std::vector<placement::Node>& before,
                                      const std::vector<placement::Node>& now);

}  // namespace drover::engine

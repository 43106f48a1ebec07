#pragma once

// What Drover tells Prometheus of itself on a node, beside the GPUs. Pure.

#include <string>
#include <vector>

#include "metrics/exposition.h"

namespace drover::kube {

struct ScrapeFacts {
  std::string version;                    ///< of the program
  bool kubelet_up = false;                ///< whether it told its containers' devices
  bool runtime_up = false;                ///< whether it told its containers
  double seconds = 0;                     ///< how long it took to find out all that is told
  std::vector<metrics::Sample> prepares;  ///< of a histogram, in seconds
};

/// Every metric of node_families() after metrics::build_family(), in its order.
std::vector<metrics::Metric> node_catalogue();
std::vector<metrics::Family> node_families(const ScrapeFacts& facts);

}  // namespace drover::kube

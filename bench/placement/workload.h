#pragma once

// Made-up clusters and streams of requests for them. Deterministic.

#include <cstdint>
#include <random>
#include <vector>

#include "placement/node.h"
#include "placement/request.h"

namespace drover::bench {

/// Machines of five kinds with 8 GPUs each (one kind in ten has none), 128 CPUs in two NUMA nodes, 1 TiB.
std::vector<placement::Node> made_up_nodes(int count);

/// What people ask for: one in eight wants no GPU, three in eight a share of one, the rest 1, 2, 4 or 8 GPUs;
/// one in three names a model, some of those with several GPUs an interconnect. CPUs and memory vary freely.
class RequestStream {
 public:
  explicit RequestStream(std::uint64_t seed) : random_(seed) {}
  placement::Request next();
  /// Below `bound`, even.
  std::size_t pick(std::size_t bound);

 private:
  bool one_in(std::size_t n) { return pick(n) == 0; }

  std::mt19937_64 random_;
};

}  // namespace drover::bench

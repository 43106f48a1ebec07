#pragma once

// Offers pods one by one to a policy and counts what it places. Simple arrays, apart from the library under
// test: what a policy says is checked here against the resources of the nodes.

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "arrivals.h"
#include "base/result.h"
#include "trace.h"

namespace drover::bench {

/// What is left of a node.
struct FreeNode {
  std::int64_t milli_cpus = 0;
  std::int64_t memory_mib = 0;
  int gpus = 0;
  int model = 0;
  std::array<int, kMaxGpus> left{};  ///< milli of each GPU

  int idle() const;
  std::int64_t milli() const;
};

bool fits(const FreeNode& node, const PodShape& shape);
/// A share comes from `gpu`; whole GPUs are the idle ones of lowest index.
void take(FreeNode& node, const PodShape& shape, int gpu);

struct Place {
  int node = 0;  ///< index into the nodes, in the order of Arrivals::nodes
  int gpu = -1;  ///< for a share
};

class Policy {
 public:
  virtual ~Policy() = default;
  /// Where a pod of this shape goes; none when it fits nowhere. It is taken before the next call.
  virtual std::optional<Place> place(const std::vector<FreeNode>& nodes, int shape) = 0;
};

using MakePolicy = std::function<std::unique_ptr<Policy>(const Trace&, const Arrivals&, std::uint64_t seed)>;

struct Outcome {
  std::map<int, double> allocation;  ///< [percent offered]: percent of all GPUs, mean over what rounds to it
  double microseconds_per_pod = 0;
};

/// An error when a policy puts a pod where it does not fit, or drops one that fits.
Result<Outcome> simulate(const Trace& trace, const Arrivals& arrivals, std::uint64_t seed,
                         const std::vector<int>& levels, const MakePolicy& make_policy);

}  // namespace drover::bench

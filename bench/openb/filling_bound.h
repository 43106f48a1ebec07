#pragma once

// What no policy can pass. The most GPU that a set of pods can fill is at most the value of a linear program
// over fillings of whole nodes (columns: pods on one node; rows: nodes of each kind, pods of each shape). It
// is solved by column generation; what is returned is the value of a dual solution, which is a bound at every
// step, whatever the solver says. Memory is ignored and CPUs are rounded in favour of the bound.
//
// Two bounds:
//   - plain: the pods of the level are chosen freely. For a policy that may refuse a pod although it fits.
//   - without refusal: for policies that place whatever fits. Take a shape b and the time T when the first
//   pod
//     of that shape is dropped. All of b before T are placed. After T there is no room for b, now and later,
//     so none for any shape that needs as much or more of everything: of these only what came before T is
//     placed. The bound is the largest over all T, and holds whichever b is taken; the smallest is used.

#include <memory>
#include <vector>

#include "arrivals.h"
#include "trace.h"

namespace drover::bench {

struct Bounds {
  double plain = 0;  ///< percent of all GPUs
  double without_refusal = 0;
};

class FillingBound {
 public:
  explicit FillingBound(const Trace& trace);
  ~FillingBound();
  FillingBound(FillingBound&&) noexcept;

  /// Of the mean allocation over the arrivals where what was offered rounds to `percent` of the capacity.
  Bounds bounds(const Arrivals& arrivals, int percent);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace drover::bench

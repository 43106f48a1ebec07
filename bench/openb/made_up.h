#pragma once

// Lists that nobody recorded, so that a policy is not fitted to those that somebody did: other mixes of
// CPU-only, shared, single and multiple GPUs, other sizes, and constraints on models. Deterministic.

#include <cstdint>
#include <string>

#include "trace.h"

namespace drover::bench {

/// The nodes of `like`, and as many pods, of shapes drawn anew. Number 0, 1, 2 … are different lists.
Trace make_up(const Trace& like, std::uint64_t number);

/// `like`, and clones of random pods of several GPUs until these want `percent` of what all pods want. That
/// is how multigpu20 was made of the default list; other numbers clone other pods.
Trace with_multiples(const Trace& like, int percent, std::uint64_t number);

}  // namespace drover::bench

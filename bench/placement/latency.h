#pragma once

// How long a choice of devices takes.

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "topologies.h"

namespace drover::bench {

/// For each machine and number of GPUs: microseconds of one choice, out of all GPUs, of random free ones, and
/// under criteria (claims, minimum, CPUs and NICs near), `samples` times each; and how many times longer it
/// takes to try all sets.
nlohmann::json measure_latency(const std::vector<Topology>& topologies, int samples, std::uint64_t seed);

void print_latency(const nlohmann::json& measured);

}  // namespace drover::bench

#pragma once

// How far choices of devices are from the best one.

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "topologies.h"

namespace drover::bench {

/// For each machine: of every free set and every number of GPUs, what the library, the lowest indices and
/// chance lose against the best set. Machines of more than 16 GPUs: of random sets of up to 16 free ones.
nlohmann::json measure_regret(const std::vector<Topology>& topologies, std::uint64_t seed);

void print_regret(const nlohmann::json& measured);

/// How many choices of the library were not the best set itself, ties included.
std::int64_t count_mistakes(const nlohmann::json& measured);

}  // namespace drover::bench

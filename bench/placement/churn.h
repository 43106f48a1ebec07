#pragma once

// How long a decision takes in a cluster where work comes and goes, by the number of nodes; and a large gang.

#include <nlohmann/json_fwd.hpp>
#include <vector>

namespace drover::bench {

/// For each number of nodes: decisions in a second (placed, taken, and as much given back), microseconds of
/// place() alone, and how many times longer it takes to look at every node.
nlohmann::json measure_churn(const std::vector<int>& sizes, int decisions, std::uint64_t seed);
void print_churn(const nlohmann::json& measured);

/// Milliseconds to place 512 members with 8 GPUs each on 512 nodes, in each arrangement.
nlohmann::json measure_gang();
void print_gang(const nlohmann::json& measured);

}  // namespace drover::bench

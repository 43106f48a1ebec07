#pragma once

// How long a decision takes in a cluster where work comes and goes, by the number of nodes.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace drover::bench {

/// For each number of nodes: decisions in a second (placed, taken, and as much given back), microseconds of
/// place() alone and of a copy of the cluster with a decision on it; with the policy "pack" also how many
/// times longer it takes to look at every node. Policies: "pack", "spread", "fragmentation".
nlohmann::json measure_churn(const std::vector<int>& sizes, const std::string& policy, int decisions,
                             std::uint64_t seed);
void print_churn(const nlohmann::json& measured);

}  // namespace drover::bench

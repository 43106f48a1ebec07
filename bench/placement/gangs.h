#pragma once

// How long it takes to find places for large gangs, and to find out that there are none.

#include <nlohmann/json_fwd.hpp>

namespace drover::bench {

/// Milliseconds for each kind of gang and each arrangement.
nlohmann::json measure_gangs();
void print_gangs(const nlohmann::json& measured);

}  // namespace drover::bench

#pragma once

// What a task used, for people. Pure, of what the API tells.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/table.h"

namespace drover::cli {

/// Of an object Use of the API, what it says: {"CPU time", "3601 s, at most 4.02 CPUs"}, …
std::vector<std::pair<const char*, std::string>> words_of_use(const nlohmann::json& use);
/// What follows from it; "" when nothing does. `record`: of a task.
std::string advice_of(const nlohmann::json& record);

/// The heads of columns_of_stats().
std::vector<std::string> stats_columns();
/// One of the times in an object TaskStats, but for the time; "-" for what nobody could measure.
std::vector<Cell> columns_of_stats(const nlohmann::json& stats, std::size_t index);
/// Of all numbers of them as text, at the same widths: for lines that come one by one.
std::string line_of(const std::vector<std::string>& cells);

}  // namespace drover::cli

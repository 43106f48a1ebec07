#pragma once

// What people and their tools ask for again and again, with everything loaded.

#include <string>

#include "load.h"

namespace drover::bench {

/// Over one connection, each so often, with the floor of each.
std::vector<Row> time_reads(Subject& subject, Connection& api, int rounds);
/// Whole processes of the command line: they start, ask, and print their table to nowhere.
std::vector<Row> time_commands(Subject& subject, const std::string& program, int rounds);

}  // namespace drover::bench

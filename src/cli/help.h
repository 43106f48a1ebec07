#pragma once

// How the help of each command looks: its usage, what it takes, the options that all commands have, and
// examples. Pure.

#include <CLI/App.hpp>
#include <string>

namespace drover::cli {

/// To be called when the tree is whole: `program` and all below it get this help.
void set_help(CLI::App& program);

/// "drover exec [OPTIONS] TASK COMMAND..."
std::string usage_of(const CLI::App& command);

/// The help of one command.
std::string help_of(const CLI::App& command);

}  // namespace drover::cli

#pragma once

// The manual page of each command: what its help says, as man(1) shows it. Pure.

#include <CLI/App.hpp>
#include <map>
#include <string>

namespace drover::cli {

/// By name, "drover-app-scale.1": of every command below `program` that its help names.
std::map<std::string, std::string> man_pages(const CLI::App& program, const std::string& version);

}  // namespace drover::cli

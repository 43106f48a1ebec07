#pragma once

// What commands that change apps have in common: they start deployments, wait for them, and say how that
// ended.

#include <CLI/App.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "cli/context.h"
#include "cli/services/watch.h"

namespace drover::cli {

/// How a deployment is started, and waited for.
struct DeployOptions {
  bool detach = false;
  bool force = false;
  bool json = false;
  std::optional<std::chrono::milliseconds> timeout;
};

/// --detach and --timeout.
void add_wait_flags(CLI::App& command, DeployOptions& options);

/// "force=true" when that was asked for. Otherwise the change takes the place only of a deployment of which
/// nothing is up yet, for which the daemon looks: it may be up by the time that somebody else has looked.
std::string force_parameter(const DeployOptions& options);

/// Waits for the deployments of `watched`, unless with `detach`, and returns the exit status: 0; 1 when an
/// app is not up afterwards, or keeps failing; that of kTimeout; 128 + SIGINT at Ctrl-C. With `detach` the
/// ids of the deployments are printed. With `json` nothing but errors is printed.
Result<int> finish_deployments(const Client& client, const Watched& watched, const DeployOptions& options);

}  // namespace drover::cli

#pragma once

// Watches deployments until they have ended: a table that stands still on a terminal, a line for each change
// otherwise.

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/client.h"

namespace drover::cli {

/// How one app is doing, in the words of a table.
struct AppState {
  std::string id;
  std::string up;      ///< "1/3"
  std::string health;  ///< "1 healthy, 1 unhealthy"; "-" without health checks
  std::string waits;   ///< what it waits for

  bool operator==(const AppState&) const = default;
};

/// `app` as the API shows it, `queue` the answer of /v2/queue. Pure.
AppState app_state(const nlohmann::json& app, const nlohmann::json& queue);
/// "/web: 1/3 up, 1 healthy; waits: 0 of 2 GPUs are free". Pure.
std::string sentence(const AppState& state);
std::string render(const std::vector<AppState>& states);

struct Watched {
  std::set<std::string> deployments;
  std::vector<std::string> apps;  ///< shown in this order
};

enum class WatchEnd { kEnded, kInterrupted };

/// Returns when none of the deployments is under way any more, or at Ctrl-C, which they survive. A daemon
/// that goes away is waited for, two minutes long.
Result<WatchEnd> watch_deployments(const Client& client, const Watched& watched, bool quiet);

}  // namespace drover::cli

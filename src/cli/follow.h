#pragma once

// Follows one task live over the daemon's `logs?follow=true`: its output byte for byte, its states, its end.
// When the connection breaks, because the daemon restarts, it comes back and goes on from the same byte. Or
// reads what it has written so far. Both outputs come in the order in which they were written.

#include <chrono>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/units.h"
#include "cli/client.h"

namespace drover::cli {

struct FollowOptions {
  std::string stream;              ///< "stdout", "stderr", or "" for both
  std::int64_t tail = -1;          ///< begin with the last so many lines; -1: with everything
  std::optional<TimePoint> since;  ///< begin with what was written then
  bool timestamps = false;         ///< put the time in front of each line
  bool quiet = false;              ///< do not tell that the daemon went away
  /// How long to try to reach a daemon that went away.
  std::chrono::seconds patience{120};
};

/// Takes a piece of an output; false ends the reading without an error.
using OutputHandler = std::function<bool(std::string_view stream, std::string_view bytes)>;

struct FollowHandlers {
  OutputHandler output;
  std::function<void(const nlohmann::json& record)> state;
  /// Says something to people; report() when it is not set.
  std::function<void(std::string_view words)> tell;
  /// True ends the waiting for a daemon that went away.
  std::function<bool()> give_up;
};

/// Returns the record of the task when it has ended; null JSON when a handler ended the following.
Result<nlohmann::json> follow_task(const Client& client, const std::string& id, const FollowOptions& options,
                                   const FollowHandlers& handlers);

/// What it has written so far.
Status read_output(const Client& client, const std::string& id, const FollowOptions& options,
                   const OutputHandler& output);

}  // namespace drover::cli

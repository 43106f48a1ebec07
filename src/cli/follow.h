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
#include "cli/event_stream.h"

namespace drover::cli {

/// How long to try to reach a daemon that went away.
inline constexpr std::chrono::seconds kComebackPatience{120};

/// A live answer whose connection may break: whether, and when, to ask again for what comes next.
class Comeback {
 public:
  using Tell = std::function<void(std::string_view words)>;

  /// `what` is given up in the end, and `meanwhile` happens until then, in words; `tell` hears once that the
  /// daemon does not answer.
  Comeback(std::string what, std::string meanwhile, std::chrono::seconds patience, Tell tell);

  /// Something came.
  void received() { received_ = true; }
  /// After a connection that ended so: waits a moment. False when `give_up` says so; an Error when asking
  /// again is of no use, or was for too long.
  Result<bool> again(const Status& ended, const std::function<bool()>& give_up);

 private:
  std::string what_, meanwhile_;
  std::chrono::seconds patience_;
  Tell tell_;
  bool received_ = false, told_ = false;
  std::chrono::steady_clock::time_point last_received_ = std::chrono::steady_clock::now();
};

/// Hears each event of a live answer, over all its connections; `handle` ends one when it returns false.
/// After each, `is_over` says whether that was all; `well`: the daemon ended it, and not what is between. An
/// Error when there was no daemon from the start, or none for too long.
Status follow_events(const Client& client, const std::string& target, Comeback comeback,
                     const std::function<bool(const ServerEvent&)>& handle,
                     const std::function<bool(bool well)>& is_over);

struct FollowOptions {
  std::string stream;              ///< "stdout", "stderr", or "" for both
  std::int64_t tail = -1;          ///< begin with the last so many lines; -1: with everything
  std::optional<TimePoint> since;  ///< begin with what was written then
  bool timestamps = false;         ///< put the time in front of each line
  bool quiet = false;              ///< do not tell that the daemon went away
  std::chrono::seconds patience = kComebackPatience;
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

#pragma once

// A thousand who follow what happens, on both streams of events: what they cost in memory, and how soon all
// have heard.

#include <nlohmann/json.hpp>

#include "load.h"

namespace drover::bench {

/// One for each stream: followers, events that each was sent, the fewest that one has seen, megabytes before,
/// while they follow, and after all have read; milliseconds until then.
nlohmann::json time_streams(Subject& subject, Connection& api, int followers, int events);
void print_streams(const nlohmann::json& streams);

}  // namespace drover::bench

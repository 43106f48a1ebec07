#pragma once

// How an app of Marathon's API is doing, in words. Pure.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/units.h"

namespace drover::cli {

struct AppState {
  std::string id;
  std::string up;            ///< "1/3"; "gone" when there is no such app any more
  std::string health;        ///< "1 healthy, 1 unhealthy"; "-" without health checks
  std::string waits;         ///< what it waits for, but for when that is
  std::int64_t seconds = 0;  ///< until what it waits for; 0: nobody knows
  int newest_up = 0;         ///< instances of its newest configuration that are up

  bool operator==(const AppState&) const = default;
};

/// `app` as the API shows it alone, with its tasks; `queue` is the answer of /v2/queue.
AppState app_state(const nlohmann::json& app, const nlohmann::json& queue, TimePoint now);
AppState gone(const std::string& id);

/// "0 of 2 GPUs are free", "first health check in 15 s".
std::string waiting_words(const AppState& state);
/// "/web: 1/3 up, 1 healthy; waits: 0 of 2 GPUs are free".
std::string sentence(const AppState& state);
std::string render(const std::vector<AppState>& states);
/// Whether `now` tells more than that time has gone by.
bool is_news(const AppState& before, const AppState& now);

/// Whether an instance of the newest configuration runs, has no check that watches over it, and was started
/// less than `time` ago: one that ends at once is up until then.
bool is_young(const nlohmann::json& app, TimePoint now, std::chrono::milliseconds time);

/// What was started with this version has the newest configuration of the app.
bool is_newest(const nlohmann::json& app, const std::string& version);

}  // namespace drover::cli

#include "cli/services/watch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>

#include "cli/context.h"
#include "cli/interrupts.h"
#include "cli/printable.h"
#include "cli/services/api.h"
#include "cli/table.h"

namespace drover::cli {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kBetween{500};
constexpr std::chrono::seconds kPatience{120};

int count_in(const json& app, const char* field) {
  const auto found = app.find(field);
  return found != app.end() && found->is_number_integer() ? found->get<int>() : 0;
}

std::string reasons_of(const json& item) {
  std::string text;
  const auto summary = item.value("processedOffersSummary", json::object());
  for (const auto& reason : summary.value("reasons", json::array()))
    if (reason.is_string()) text += (text.empty() ? "" : "; ") + reason.get<std::string>();
  const auto delay = item.value("delay", json::object());
  if (const auto left = count_in(delay, "timeLeftSeconds"); text.empty() && left > 0)
    text = fmt::format("the next start is in {} s", left);
  return text;
}

/// Ctrl-C wakes whoever sleeps.
class Alarm {
 public:
  void ring() {
    const std::lock_guard lock(mutex_);
    rung_ = true;
    changed_.notify_all();
  }
  /// True when it was rung meanwhile.
  bool sleep(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, time, [this] { return rung_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool rung_ = false;
};

/// Shows states: over what it showed before on a terminal, else what is new.
class Screen {
 public:
  explicit Screen(bool quiet) : quiet_(quiet), live_(::isatty(STDOUT_FILENO) == 1) {}

  void show(const std::vector<AppState>& states) {
    if (quiet_ || states == shown_) return;
    std::string text;
    if (live_) {
      if (lines_ > 0) text = fmt::format("\x1b[{}A\x1b[J", lines_);
      const auto table = cli::render(states);
      lines_ = static_cast<std::size_t>(std::count(table.begin(), table.end(), '\n'));
      text += table;
    } else {
      for (const auto& state : states)
        if (std::ranges::find(shown_, state) == shown_.end()) text += sentence(state) + "\n";
    }
    shown_ = states;
    print(text);
  }

 private:
  bool quiet_;
  bool live_;
  std::size_t lines_ = 0;
  std::vector<AppState> shown_;
};

/// One look: true while any of the deployments is under way.
Result<bool> refresh(const Client& client, const Watched& watched, Screen& screen) {
  DROVER_TRY(const auto deployments, client.get("/v2/deployments"));
  DROVER_TRY(const auto queue, client.get("/v2/queue"));
  std::vector<AppState> states;
  for (const auto& id : watched.apps) {
    DROVER_TRY(const auto target, app_target(id));
    const auto app = client.get(target);
    if (app)
      states.push_back(app_state(app->value("app", json::object()), queue));
    else if (app.error().kind == ErrorKind::kNotFound)
      states.push_back({id, "gone", "-", ""});
    else
      return Failure(app.error());
  }
  screen.show(states);
  return std::ranges::any_of(deployments, [&](const json& deployment) {
    return deployment.is_object() && watched.deployments.contains(deployment.value("id", ""));
  });
}

}  // namespace

AppState app_state(const json& app, const json& queue) {
  AppState state{app.value("id", ""),
                 fmt::format("{}/{}", count_in(app, "tasksRunning"), count_in(app, "instances")), "-", ""};
  const auto checks = app.value("healthChecks", json::array());
  if (checks.is_array() && !checks.empty()) {
    state.health = fmt::format("{} healthy", count_in(app, "tasksHealthy"));
    if (const auto ill = count_in(app, "tasksUnhealthy"); ill > 0)
      state.health += fmt::format(", {} unhealthy", ill);
  }
  // By reference: there may be as many that wait as there are apps.
  if (const auto items = queue.find("queue"); items != queue.end())
    for (const auto& item : *items)
      if (const auto whose = item.find("app"); whose != item.end() && whose->value("id", "") == state.id)
        state.waits = reasons_of(item);
  return state;
}

std::string sentence(const AppState& state) {
  auto text = fmt::format("{}: {}", printable(state.id), state.up);
  if (state.up != "gone") text += " up";
  if (state.health != "-") text += ", " + state.health;
  if (!state.waits.empty()) text += "; waits: " + printable(state.waits);
  return text;
}

std::string render(const std::vector<AppState>& states) {
  Table table({"APP", "UP", "HEALTH", "WAITS FOR"});
  for (const auto& state : states) table.add({state.id, state.up, state.health, state.waits});
  return shown(table);
}

Result<WatchEnd> watch_deployments(const Client& client, const Watched& watched, bool quiet) {
  Alarm alarm;
  const Interrupts interrupts([&](int) { alarm.ring(); });
  Screen screen(quiet);
  std::optional<Clock::time_point> away_since;
  for (;;) {
    const auto going_on = refresh(client, watched, screen);
    if (going_on) {
      away_since.reset();
      if (!*going_on) return WatchEnd::kEnded;
    } else if (going_on.error().kind != ErrorKind::kUnavailable) {
      return Failure(going_on.error());
    } else if (!away_since) {
      away_since = Clock::now();
      report(fmt::format("the daemon does not answer; the deployment goes on with it, trying again for {} s",
                         kPatience.count()));
    } else if (Clock::now() - *away_since > kPatience) {
      return Failure(going_on.error());
    }
    if (alarm.sleep(kBetween)) return WatchEnd::kInterrupted;
  }
}

}  // namespace drover::cli

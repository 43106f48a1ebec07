#include "cli/services/watch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "cli/context.h"
#include "cli/interrupts.h"
#include "cli/services/api.h"
#include "cli/services/app_state.h"
#include "cli/services/failure.h"
#include "cli/services/fields.h"

namespace drover::cli {
namespace {

using nlohmann::json;
using Clock = Progress::Clock;
using Failures = std::map<std::string, AppFailure>;  // by app

constexpr std::chrono::milliseconds kBetween{500};
constexpr std::chrono::seconds kPatience{120};
constexpr std::chrono::seconds kProving{5};  ///< that an instance without health checks is to live

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

/// Shows states and failures: over what it showed before on a terminal, else what is new.
class Screen {
 public:
  Screen() : live_(::isatty(STDOUT_FILENO) == 1) {}

  void show(const std::vector<AppState>& states, const Failures& failures) {
    if (live_)
      draw(states, failures);
    else
      add_lines(states, failures);
  }

 private:
  void draw(const std::vector<AppState>& states, const Failures& failures) {
    auto text = cli::render(states);
    for (const auto& [app, failure] : failures) text += failure_text(failure, wall_clock(), columns());
    if (text == drawn_) return;
    const auto lines = std::ranges::count(drawn_, '\n');
    print((lines > 0 ? fmt::format("\x1b[{}A\x1b[J", lines) : "") + text);
    drawn_ = std::move(text);
  }

  void add_lines(const std::vector<AppState>& states, const Failures& failures) {
    std::string text;
    for (const auto& state : states) {
      auto& told = told_[state.id];
      const auto is_told = [&](const AppState& before) { return !is_news(before, state); };
      // What fails is up and down again.
      const bool known = failures.contains(state.id) ? std::ranges::any_of(told, is_told)
                                                     : !told.empty() && is_told(told.back());
      if (known) continue;
      text += sentence(state) + "\n";
      told.push_back(state);
    }
    for (const auto& [app, failure] : failures) {
      const auto known = failures_.find(app);
      if (known != failures_.end() && is_alike(known->second, failure)) continue;
      text += failure_text(failure, wall_clock(), 0);
      failures_.insert_or_assign(app, failure);
    }
    if (!text.empty()) print(text);
  }

  bool live_;
  std::string drawn_;
  // Lines that were printed.
  std::map<std::string, std::vector<AppState>> told_;  ///< by app
  Failures failures_;
};

class Watch {
 public:
  Watch(const Client& client, const Watched& watched, bool quiet)
      : client_(client), watched_(watched), quiet_(quiet) {}

  /// One look: true while any of the deployments is under way.
  Result<bool> look() {
    DROVER_TRY(const auto deployments, client_.get("/v2/deployments"));
    DROVER_TRY(const auto queue, client_.get("/v2/queue"));
    std::vector<AppState> states;
    is_young_ = false;
    fallen_.clear();
    for (const auto& id : watched_.apps) {
      DROVER_TRY(const auto target, app_target(id));
      const auto answer = client_.get(target);
      if (!answer && answer.error().kind != ErrorKind::kNotFound) return Failure(answer.error());
      states.push_back(answer ? take(answer->value("app", json::object()), queue) : gone(id));
    }
    if (!quiet_) screen_.show(states, failures_);
    return std::ranges::any_of(deployments, [&](const json& deployment) {
      return deployment.is_object() && watched_.deployments.contains(deployment.value("id", ""));
    });
  }
  /// Whether instances are up, in the last look, that may end at once.
  bool is_young() const { return is_young_; }
  const std::set<std::string>& fallen() const { return fallen_; }
  std::optional<Progress::Failing> failing() const { return progress_.failing(Clock::now()); }

 private:
  AppState take(const json& app, const json& queue) {
    const auto state = app_state(app, queue, wall_clock());
    auto failure = last_failure(app);
    if (failure && !is_newest(app, failure->version)) failure.reset();  // of what is replaced now
    progress_.see(state.id, state.newest_up, failure ? failure->task : "", Clock::now());
    if (!failure) {
      failures_.erase(state.id);
    } else if (const auto known = failures_.find(state.id);
               known == failures_.end() || known->second.task != failure->task) {
      if (!quiet_) add_output(client_, *failure);
      failures_.insert_or_assign(state.id, std::move(*failure));
    }
    prove(app, state.id);
    return state;
  }

  void prove(const json& app, const std::string& id) {
    const bool all_run = count_in(app, "tasksRunning") >= count_in(app, "instances");
    if (all_run && cli::is_young(app, wall_clock(), kProving)) {
      young_.insert(id);
      is_young_ = true;
    } else if (!all_run && young_.contains(id)) {
      fallen_.insert(id);
    }
  }

  const Client& client_;
  const Watched& watched_;
  bool quiet_;
  Screen screen_;
  Failures failures_;
  Progress progress_;
  std::set<std::string> young_;   ///< apps that were so with all their instances
  std::set<std::string> fallen_;  ///< of those, what has fewer now
  bool is_young_ = false;
};

}  // namespace

Result<WatchResult> watch_deployments(const Client& client, const Watched& watched,
                                      std::optional<std::chrono::milliseconds> timeout, bool quiet) {
  Alarm alarm;
  const Interrupts interrupts([&](int) { alarm.ring(); });
  Watch watch(client, watched, quiet);
  const auto begin = Clock::now();
  std::optional<Clock::time_point> away_since;
  std::optional<Clock::time_point> ended;
  for (;;) {
    const auto going_on = watch.look();
    if (going_on) {
      away_since.reset();
      if (!*going_on) {
        ended = ended.value_or(Clock::now());
        if (!watch.fallen().empty() || !watch.is_young() || Clock::now() - *ended >= kProving)
          return WatchResult{WatchEnd::kEnded, {}, watch.fallen()};
      } else if (const auto failing = watch.failing()) {
        return WatchResult{WatchEnd::kFailing, *failing, {}};
      }
    } else if (going_on.error().kind != ErrorKind::kUnavailable) {
      return Failure(going_on.error());
    } else if (!away_since) {
      away_since = Clock::now();
      report(fmt::format("the daemon does not answer; the deployment goes on with it, trying again for {} s",
                         kPatience.count()));
    } else if (Clock::now() - *away_since > kPatience) {
      return Failure(going_on.error());
    }
    const auto gone_by = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
    if (timeout && gone_by >= *timeout)
      return WatchResult{ended ? WatchEnd::kEnded : WatchEnd::kTimedOut, {}, {}};
    if (alarm.sleep(timeout ? std::min(kBetween, *timeout - gone_by) : kBetween))
      return WatchResult{WatchEnd::kInterrupted, {}, {}};
  }
}

}  // namespace drover::cli

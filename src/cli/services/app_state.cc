#include "cli/services/app_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "cli/context.h"
#include "cli/printable.h"
#include "cli/services/fields.h"
#include "cli/table.h"

namespace drover::cli {
namespace {

using nlohmann::json;

constexpr int kUsualDelay = 15;  ///< of a health check, in seconds

/// What the queue says of the app.
void take_reasons(const json& item, AppState& state) {
  std::string text;
  const auto summary = item.value("processedOffersSummary", json::object());
  for (const auto& reason : summary.value("reasons", json::array()))
    if (reason.is_string()) text += (text.empty() ? "" : "; ") + reason.get<std::string>();
  const auto left = count_in(item.value("delay", json::object()), "timeLeftSeconds");
  const auto when = fmt::format(" in {} s", left);
  if (text.empty() && left > 0) text = "the next start is" + when;
  if (left > 0 && text.ends_with(when)) {
    text.resize(text.size() - when.size());
    state.seconds = left;
  }
  state.waits = text;
}

/// Why the check of an instance fails; "" when none does, or nobody knows.
std::string cause_of(const json& results) {
  for (const auto& result : results)
    if (result.is_object() && !result.value("alive", false))
      if (const auto cause = text_in(result, "lastFailureCause"); !cause.empty()) return cause;
  return "";
}

/// Instances that run may wait for their checks.
void take_checks(const json& app, TimePoint now, AppState& state) {
  int delay = kUsualDelay;
  for (const auto& check : list_in(app, "healthChecks"))
    if (check.is_object() && check.contains("delaySeconds")) delay = count_in(check, "delaySeconds");
  std::optional<TimePoint> first;
  for (const auto& task : list_in(app, "tasks")) {
    const auto started = parse_time(text_in(task, "startedAt"));
    if (text_in(task, "state") != "TASK_RUNNING" || !started) continue;
    const auto results = list_in(task, "healthCheckResults");
    if (const auto cause = cause_of(results); !cause.empty())
      state.waits = "its health check fails: " + cause;
    const auto due = *started + std::chrono::seconds(delay);
    if (results.empty()) first = std::min(first.value_or(due), due);
  }
  if (!state.waits.empty() || !first) return;
  state.waits = "first health check";
  const auto left = std::chrono::ceil<std::chrono::seconds>(*first - now).count();
  state.seconds = std::clamp<std::int64_t>(left, 0, delay);
}

bool instance_is_up(const json& task, bool checked) {
  if (text_in(task, "state") != "TASK_RUNNING") return false;
  const auto results = list_in(task, "healthCheckResults");
  return !checked || (!results.empty() && std::ranges::all_of(results, [](const json& result) {
    return result.is_object() && result.value("alive", false);
  }));
}

}  // namespace

bool is_newest(const json& app, const std::string& version) {
  return version >= text_in(app.value("versionInfo", json::object()), "lastConfigChangeAt");
}

bool is_young(const json& app, TimePoint now, std::chrono::milliseconds time) {
  return list_in(app, "healthChecks").empty() &&
         std::ranges::any_of(list_in(app, "tasks"), [&](const json& task) {
           const auto started = parse_time(text_in(task, "startedAt"));
           return started && now - *started < time && is_newest(app, text_in(task, "version")) &&
                  instance_is_up(task, false);
         });
}

AppState gone(const std::string& id) {
  return {.id = id, .up = "gone", .health = "-", .waits = ""};
}

AppState app_state(const json& app, const json& queue, TimePoint now) {
  AppState state{.id = text_in(app, "id"),
                 .up = fmt::format("{}/{}", count_in(app, "tasksRunning"), count_in(app, "instances")),
                 .health = "-",
                 .waits = ""};
  const bool checked = !list_in(app, "healthChecks").empty();
  if (checked) {
    state.health = fmt::format("{} healthy", count_in(app, "tasksHealthy"));
    if (const auto ill = count_in(app, "tasksUnhealthy"); ill > 0)
      state.health += fmt::format(", {} unhealthy", ill);
  }
  // By reference: there may be as many that wait as there are apps.
  if (const auto items = queue.find("queue"); items != queue.end())
    for (const auto& item : *items)
      if (const auto whose = item.find("app"); whose != item.end() && text_in(*whose, "id") == state.id)
        take_reasons(item, state);
  if (checked && state.waits.empty()) take_checks(app, now, state);
  for (const auto& task : list_in(app, "tasks"))
    if (is_newest(app, text_in(task, "version")) && instance_is_up(task, checked)) ++state.newest_up;
  return state;
}

std::string waiting_words(const AppState& state) {
  return state.seconds > 0 ? fmt::format("{} in {} s", state.waits, state.seconds) : state.waits;
}

std::string sentence(const AppState& state) {
  auto text = fmt::format("{}: {}", printable(state.id), state.up);
  if (state.up != "gone") text += " up";
  if (state.health != "-") text += ", " + state.health;
  if (!state.waits.empty()) text += "; waits: " + printable(waiting_words(state));
  return text;
}

std::string render(const std::vector<AppState>& states) {
  Table table({"APP", "UP", "HEALTH", "WAITS FOR"});
  for (const auto& state : states) table.add({state.id, state.up, state.health, waiting_words(state)});
  return shown(table);
}

bool is_news(const AppState& before, const AppState& now) {
  return before.id != now.id || before.up != now.up || before.health != now.health ||
         before.waits != now.waits;
}

}  // namespace drover::cli

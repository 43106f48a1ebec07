#include "cli/services/deploy.h"

#include <fmt/format.h>
#include <signal.h>

#include <nlohmann/json.hpp>

#include "base/units.h"
#include "cli/services/api.h"
#include "cli/services/app_state.h"
#include "cli/services/failure.h"
#include "cli/services/fields.h"

namespace drover::cli {
namespace {

using nlohmann::json;

/// Null when it is not there.
Result<json> app_or_null(const Client& client, const std::string& app) {
  DROVER_TRY(const auto target, app_target(app));
  auto answer = client.get(target);
  if (!answer && answer.error().kind == ErrorKind::kNotFound) return json();
  if (!answer) return Failure(answer.error());
  return answer->value("app", json::object());
}

/// Whether as many instances run as are to; what is not there is up when it was to go.
bool all_run(const json& app) {
  return app.is_null() || count_in(app, "tasksRunning") >= count_in(app, "instances");
}

void report_failure(const Client& client, const json& app) {
  auto failure = last_failure(app);
  if (!failure || !is_newest(app, failure->version)) return;
  add_output(client, *failure);
  auto text = failure_text(*failure, wall_clock(), 0);
  text.pop_back();
  report(text);
}

/// How the apps are that the waiting is given up for.
Status report_apps(const Client& client, const std::vector<std::string>& apps) {
  DROVER_TRY(const auto queue, client.get("/v2/queue"));
  for (const auto& id : apps) {
    DROVER_TRY(const auto app, app_or_null(client, id));
    if (app.is_null()) continue;
    report(sentence(app_state(app, queue, wall_clock())));
    report_failure(client, app);
  }
  return {};
}

/// What can be done about deployments that go on.
void advise(const Watched& watched) {
  const bool single = watched.apps.size() == 1 && watched.deployments.size() == 1;
  if (single)
    return report(
        fmt::format("'drover app inspect {0}' shows how it is, 'drover app cancel {0}' takes it back",
                    watched.apps.front()));
  report("'drover app deployments' shows how it is");
  for (const auto& id : watched.deployments) report(fmt::format("'drover app cancel {}' takes it back", id));
}

Result<int> given_up(const Client& client, const Watched& watched, const DeployOptions& options,
                     const WatchResult& result) {
  if (result.end == WatchEnd::kInterrupted) {
    report("the deployment goes on without you");
    advise(watched);
    return 128 + SIGINT;
  }
  const bool failing = result.end == WatchEnd::kFailing;
  if (failing)
    report(fmt::format("{}: its instances keep failing, {} of them within {}; the deployment goes on",
                       result.failing.app, result.failing.failures, format_duration(result.failing.time)));
  else
    report(fmt::format("the deployment has not ended within {}; it goes on",
                       format_duration(options.timeout.value_or(std::chrono::milliseconds(0)))));
  DROVER_CHECK_OK(report_apps(client, failing ? std::vector<std::string>{result.failing.app} : watched.apps));
  advise(watched);
  return failing ? 1 : error_kind_info(ErrorKind::kTimeout).exit_status;
}

}  // namespace

void add_wait_flags(CLI::App& command, DeployOptions& options) {
  command.add_flag("--detach,-d", options.detach, "Print the deployment's id and do not wait");
  const auto take = [&options](const std::string& text) {
    const auto parsed = parse_duration(text);
    if (!parsed || parsed->count() == 0)
      throw CLI::ValidationError("--timeout", "'" + text + "' is no time, which is written as 90s or 15m");
    options.timeout = *parsed;
  };
  command.add_option_function<std::string>("--timeout", take, "Wait so long at most: 15m")->type_name("TIME");
}

std::string force_parameter(const DeployOptions& options) {
  return options.force ? "force=true" : "force=unlessUp";
}

Result<int> finish_deployments(const Client& client, const Watched& watched, const DeployOptions& options) {
  if (watched.deployments.empty()) return 0;
  if (options.detach) {
    for (const auto& id : watched.deployments)
      if (!options.json) print(id + "\n");
    return 0;
  }
  DROVER_TRY(const auto result, watch_deployments(client, watched, options.timeout, options.json));
  if (result.end != WatchEnd::kEnded) return given_up(client, watched, options, result);
  int status = 0;
  for (const auto& id : watched.apps) {
    DROVER_TRY(const auto app, app_or_null(client, id));
    const bool fallen = result.fallen.contains(id);
    if (all_run(app) && !fallen) continue;
    report(
        fmt::format("{}: its deployment has ended, and {}", id,
                    fallen ? "an instance ended right after its start" : "not all of its instances are up"));
    report_failure(client, app);
    status = 1;
  }
  return status;
}

}  // namespace drover::cli

#include "cli/services/deploy.h"

#include <fmt/format.h>
#include <signal.h>

#include <nlohmann/json.hpp>

#include "cli/services/api.h"

namespace drover::cli {

using nlohmann::json;

Result<bool> is_up(const Client& client, const std::string& app) {
  DROVER_TRY(const auto target, app_target(app));
  const auto answer = client.get(target);
  if (!answer && answer.error().kind == ErrorKind::kNotFound) return true;
  if (!answer) return Failure(answer.error());
  const auto shown = answer->value("app", json::object());
  return shown.value("tasksRunning", 0) >= shown.value("instances", 0);
}

Result<int> finish_deployments(const Client& client, const Watched& watched, bool detach, bool quiet) {
  if (watched.deployments.empty()) return 0;
  if (detach) {
    for (const auto& id : watched.deployments)
      if (!quiet) print(id + "\n");
    return 0;
  }
  DROVER_TRY(const auto end, watch_deployments(client, watched, quiet));
  if (end == WatchEnd::kInterrupted) {
    report("the deployment goes on without you");
    for (const auto& app : watched.apps)
      report(fmt::format("'drover app show {}' shows how it is, 'drover app rollback {}' takes it back", app,
                         app));
    return 128 + SIGINT;
  }
  int status = 0;
  for (const auto& app : watched.apps) {
    DROVER_TRY(const bool up, is_up(client, app));
    if (up) continue;
    report(fmt::format("{}: its deployment has ended, and not all of its instances are up", app));
    status = 1;
  }
  return status;
}

}  // namespace drover::cli

#include "definitions.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace drover::bench {
namespace {

using nlohmann::json;

constexpr int kTeams = 50;
/// A machine has 1,001 ports to give; so many apps of five instances leave some over.
constexpr int kAppsWithPorts = 190;

json app(int number, int instances) {
  json app = {{"id", app_id(number)},
              {"cmd", fmt::format("exec /srv/serve.py --model /models/{} --workers 4", number)},
              {"instances", instances},
              {"cpus", 0.5},
              {"mem", 512},
              {"env", {{"MODEL", fmt::format("resnet-{}", number)}, {"LOG_LEVEL", "info"}, {"REGION", "eu"}}},
              {"labels", {{"owner", "vision"}, {"tier", number % 3 == 0 ? "gold" : "silver"}}},
              {"container", {{"type", "MESOS"}, {"docker", {{"image", "registry.local/serve:1.4.2"}}}}},
              {"upgradeStrategy", {{"minimumHealthCapacity", 0.8}, {"maximumOverCapacity", 0.2}}},
              {"portDefinitions", json::array()},
              {"healthChecks",
               {{{"protocol", "COMMAND"},
                 {"command", {{"value", "/srv/healthy.sh"}}},
                 {"intervalSeconds", 3600},
                 {"delaySeconds", 3600},
                 {"maxConsecutiveFailures", 0}}}}};
  if (number < kAppsWithPorts) app["portDefinitions"] = {{{"port", 0}, {"name", "http"}}};
  return app;
}

}  // namespace

std::string app_id(int number) {
  return fmt::format("/team-{:02}/app-{:04}", number % kTeams, number);
}

std::string app_definition(int number, int instances) {
  return app(number, instances).dump();
}

std::string app_definitions(int first, int behind, int instances) {
  json all = json::array();
  for (int number = first; number < behind; ++number) all.push_back(app(number, instances));
  return all.dump();
}

std::string job_definition(int number) {
  return json({{"name", fmt::format("report-{:04}", number)},
               {"command", fmt::format("/srv/report.py --customer {} --out $MESOS_SANDBOX", number)},
               {"schedule", fmt::format("R/2099-01-{:02}T{:02}:00:00Z/P1D", 1 + number % 28, number % 24)},
               {"epsilon", "PT30M"},
               {"owner", "reports@example.com"},
               {"cpus", 0.25},
               {"mem", 128},
               {"retries", 2},
               {"environmentVariables", {{{"name", "REGION"}, {"value", "eu"}}}}})
      .dump();
}

}  // namespace drover::bench

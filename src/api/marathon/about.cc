// What the service says about itself.

#include <charconv>
#include <nlohmann/json.hpp>

#include "api/marathon/answers.h"
#include "api/marathon/handlers.h"
#include "api/marathon/views.h"
#include "api/mesos/master.h"
#include "base/json_text.h"
#include "marathon/app.h"

namespace drover::api::marathon_v2 {

using nlohmann::json;

namespace {

/// Of the API that is spoken: clients look at it to learn what they may ask for.
constexpr const char* kSpoken = "1.11.0";

}  // namespace

/// Marathon leads from here to its pages. Drover has none, so it says where things are.
Answer get_front(const Services& services, const Request&) {
  auto response = answer(services,
                         "Drover gives containers exactly the GPUs they should have. Here are\n"
                         "  /v1/               Drover's own API: tasks, GPUs, queues\n"
                         "  /v2/               Marathon's API: apps, groups, deployments, events\n"
                         "  /v1/scheduler/     Chronos' API: jobs\n"
                         "  /api/v1/scheduler  Mesos' API for frameworks\n"
                         "  /state, /slaves    what tools for Mesos read\n"
                         "  /ping, /health     whether it is there\n");
  response.content_type = "text/plain";
  return response;
}

Answer ping(const Services& services, const Request& request) {
  const auto found = request.headers.find("accept");
  const auto accept = found == request.headers.end() ? "*/*" : found->second;
  const auto takes = [&](std::string_view type) { return accept.find(type) != std::string::npos; };
  auto response = answer(services, "pong");
  response.content_type = "text/plain";
  if (accept.empty() || takes("*/*") || takes("text/plain") || takes("text/*")) return response;
  if (takes("application/json")) return answer(services, "\"pong\"");
  return answer(services, "", 204);
}

Answer get_info(const Services& services, const Request&) {
  const auto here = services.address;
  const auto colon = here.rfind(':');
  json port;
  int number = 0;
  if (colon != std::string::npos &&
      std::from_chars(here.data() + colon + 1, here.data() + here.size(), number).ec == std::errc())
    port = number;
  return answer(services, to_text(json{{"name", "marathon"},
                                       {"version", kSpoken},
                                       {"buildref", "drover-" + services.version},
                                       {"elected", true},
                                       {"leader", here},
                                       {"frameworkId", services.mesos->marathon_id()},
                                       {"marathon_config",
                                        {{"checkpoint", true},
                                         {"executor", "//cmd"},
                                         {"features", {"gpu_resources"}},
                                         {"framework_name", "marathon"},
                                         {"ha", false},
                                         {"hostname", services.decisions->state().node},
                                         {"local_port_min", marathon::kFirstServicePort},
                                         {"local_port_max", marathon::kLastServicePort},
                                         {"master", here},
                                         {"mesos_leader_ui_url", "http://" + here},
                                         {"mesos_role", "*"},
                                         {"mesos_user", "root"},
                                         {"webui_url", "http://" + here}}},
                                       {"zookeeper_config", json::object()},
                                       {"http_config", {{"http_port", port}, {"https_port", nullptr}}}}));
}

Answer get_leader(const Services& services, const Request&) {
  return answer(services, to_text(json{{"leader", services.address}}));
}

/// There is one daemon, so it is elected again at once.
Answer abdicate(const Services& services, const Request& request) {
  if (!request.caller->is_root()) return not_his(services);
  return answer(services, to_text(json{{"message", "Leadership abdicated"}}));
}

Answer list_plugins(const Services& services, const Request&) {
  return answer(services, to_text(json{{"plugins", json::array()}}));
}

namespace {

Answer write_metrics(const Services& services, const Request&, const World& world) {
  int apps = 0;
  Counts sum;
  for (const auto* record : world.services()) {
    const auto counts = world.counts(*record);
    ++apps;
    sum.staged += counts.staged;
    sum.running += counts.running;
  }
  const auto gauge = [](auto value) { return json{{"value", value}}; };
  return answer(services,
                to_text(json{{"version", "4.0.0"},
                             {"gauges",
                              {{"marathon.apps.active.gauge", gauge(apps)},
                               {"marathon.deployments.active.gauge", gauge(world.state().deployments.size())},
                               {"marathon.instances.running.gauge", gauge(sum.running)},
                               {"marathon.instances.staged.gauge", gauge(sum.staged)}}},
                             {"counters", json::object()},
                             {"histograms", json::object()},
                             {"meters", json::object()},
                             {"timers", json::object()}}));
}

}  // namespace

AnswerBeside get_metrics(const Services& services, const Request& request) {
  return beside_of(services, request, Scope::kAll, write_metrics);
}

/// Marathon and Chronos show the levels of their loggers; Drover has one logger, and keeps its level.
Answer get_logging(const Services& services, const Request&) {
  auto response = answer(services, "ROOT info\n");
  response.content_type = "text/plain";
  return response;
}

}  // namespace drover::api::marathon_v2

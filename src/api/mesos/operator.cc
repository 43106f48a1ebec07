#include "api/mesos/operator.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "api/mesos/call.h"
#include "api/mesos/values.h"
#include "api/mesos/views.h"

namespace drover::api::mesos {
namespace {

using nlohmann::json;

json flags_of(const Master& master) {
  return {{"filter_gpu_resources", master.options().filter_gpu_resources ? "true" : "false"},
          {"port", std::to_string(master.options().port)}};
}

}  // namespace

Result<Response> get_version(const Services&, const Request&) {
  return compact(
      {{"build_date", ""}, {"build_time", 0.0}, {"build_user", "drover"}, {"version", kMesosVersion}});
}

Result<Response> get_state(const Services& services, const Request& request) {
  const auto& master = *services.mesos;
  const auto& options = master.options();
  const auto pid = fmt::format("master@{}:{}", options.ip, options.port);
  return compact(
      {{"version", kMesosVersion},
       {"build_date", ""},
       {"build_time", 0.0},
       {"build_user", "drover"},
       {"start_time", seconds_of(master.started_at())},
       {"elected_time", seconds_of(master.started_at())},
       {"id", master.id()},
       {"pid", pid},
       {"hostname", options.hostname},
       {"leader", pid},
       {"leader_info",
        {{"id", master.id()}, {"pid", pid}, {"port", options.port}, {"hostname", options.hostname}}},
       {"activated_slaves", 1.0},
       {"deactivated_slaves", 0.0},
       {"unreachable_slaves", 0.0},
       {"flags", flags_of(master)},
       {"slaves", json::array({view_slave(services)})},
       {"recovered_slaves", json::array()},
       {"frameworks", view_frameworks(services, *request.caller, false)},
       {"completed_frameworks", view_frameworks(services, *request.caller, true)},
       {"orphan_tasks", json::array()},
       {"unregistered_frameworks", json::array()}});
}

Result<Response> get_slaves(const Services& services, const Request&) {
  return compact({{"slaves", json::array({view_slave(services)})}, {"recovered_slaves", json::array()}});
}

Result<Response> get_frameworks(const Services& services, const Request& request) {
  return compact({{"frameworks", view_frameworks(services, *request.caller, false)},
                  {"completed_frameworks", view_frameworks(services, *request.caller, true)},
                  {"unregistered_frameworks", json::array()}});
}

Result<Response> get_tasks(const Services& services, const Request& request) {
  json tasks = json::array();
  for (const bool removed : {false, true})
    for (auto& framework : view_frameworks(services, *request.caller, removed))
      for (const auto* list : {"tasks", "completed_tasks"})
        for (auto& task : framework[list]) tasks.push_back(std::move(task));
  return compact({{"tasks", std::move(tasks)}});
}

Result<Response> get_flags(const Services& services, const Request&) {
  return compact({{"flags", flags_of(*services.mesos)}});
}

Result<Response> get_health(const Services&, const Request&) {
  return text_response(200, "");
}

Result<Response> get_redirect(const Services& services, const Request&) {
  const auto& options = services.mesos->options();
  Response response;
  response.status = 307;
  response.content_type = "";
  response.headers.emplace_back("Location", fmt::format("//{}:{}", options.hostname, options.port));
  return response;
}

}  // namespace drover::api::mesos

#include "api/mesos/operator.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "api/mesos/call.h"
#include "api/mesos/values.h"
#include "api/mesos/views.h"

namespace drover::api::mesos {
namespace {

using nlohmann::json;

/// Of /tasks when no `limit` is given, as in Mesos.
constexpr std::size_t kTasksAtOnce = 100;

/// Whether a parameter that picks one of several picks this one, or none is given.
bool is_wanted(const Request& request, const std::string& parameter, const std::string& id) {
  const auto given = request.query.find(parameter);
  return given == request.query.end() || given->second == id;
}

/// What is no number does not count, as in Mesos.
std::size_t parameter_of(const Request& request, const std::string& parameter, std::size_t fallback) {
  const auto given = request.query.find(parameter);
  if (given == request.query.end()) return fallback;
  const auto& text = given->second;
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : fallback;
}

}  // namespace

json view_version() {
  return {{"build_date", ""}, {"build_time", 0.0}, {"build_user", "drover"}, {"version", kMesosVersion}};
}

json view_flags(const Master& master) {
  return {{"filter_gpu_resources", master.options().filter_gpu_resources ? "true" : "false"},
          {"port", std::to_string(master.options().port)}};
}

Result<Response> get_version(const Services&, const Request&) {
  return compact(view_version());
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
       {"flags", view_flags(master)},
       {"slaves", json::array({view_slave(services)})},
       {"recovered_slaves", json::array()},
       {"frameworks", view_frameworks(services, *request.caller, false)},
       {"completed_frameworks", view_frameworks(services, *request.caller, true)},
       {"orphan_tasks", json::array()},
       {"unregistered_frameworks", json::array()}});
}

Result<Response> get_slaves(const Services& services, const Request& request) {
  json slaves = json::array();
  if (is_wanted(request, "slave_id", services.mesos->agent_id())) slaves.push_back(view_slave(services));
  return compact({{"slaves", std::move(slaves)}, {"recovered_slaves", json::array()}});
}

Result<Response> get_frameworks(const Services& services, const Request& request) {
  const auto wanted = [&](bool removed) {
    auto frameworks = view_frameworks(services, *request.caller, removed);
    std::erase_if(frameworks.get_ref<json::array_t&>(), [&](const json& framework) {
      return !is_wanted(request, "framework_id", framework["id"].get_ref<const std::string&>());
    });
    return frameworks;
  };
  return compact({{"frameworks", wanted(false)},
                  {"completed_frameworks", wanted(true)},
                  {"unregistered_frameworks", json::array()}});
}

/// The latest first unless `order=asc`; `offset` and `limit` as Mesos has them.
Result<Response> get_tasks(const Services& services, const Request& request) {
  std::vector<SeenFramework> frameworks;
  for (const bool removed : {false, true})
    std::ranges::move(frameworks_for(services, *request.caller, removed), std::back_inserter(frameworks));
  struct Row {
    std::optional<TimePoint> first_status;
    const SeenFramework* framework;
    const control::TaskRecord* task;
  };
  std::vector<Row> rows;
  for (const auto& framework : frameworks) {
    if (!is_wanted(request, "framework_id", framework.id)) continue;
    for (const auto* task : framework.tasks)
      if (is_wanted(request, "task_id", task->task.origin.task_id))
        rows.push_back({task->started_at ? task->started_at : task->finished_at, &framework, task});
  }
  const auto place = [](const Row& row) { return std::pair(row.first_status, row.task->sequence); };
  const auto order = request.query.find("order");
  if (order != request.query.end() && order->second == "asc")
    std::ranges::sort(rows, {}, place);
  else
    std::ranges::sort(rows, std::greater(), place);
  const auto begin = std::min(parameter_of(request, "offset", 0), rows.size());
  const auto end = begin + std::min(parameter_of(request, "limit", kTasksAtOnce), rows.size() - begin);
  json tasks = json::array();
  for (auto at = begin; at < end; ++at)
    tasks.push_back(view_task(services, *rows[at].framework, *rows[at].task));
  return compact({{"tasks", std::move(tasks)}});
}

Result<Response> get_flags(const Services& services, const Request&) {
  return compact({{"flags", view_flags(*services.mesos)}});
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

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

json view_flags(const MasterOptions& options) {
  return {{"filter_gpu_resources", options.filter_gpu_resources ? "true" : "false"},
          {"port", std::to_string(options.port)}};
}

Result<Response> get_version(const Services&, const Request&) {
  return compact(view_version());
}

Result<Response> write_state(const Snapshot& snapshot, const Request&) {
  const auto& options = snapshot.options;
  const auto pid = fmt::format("master@{}:{}", options.ip, options.port);
  const auto frameworks = frameworks_for(snapshot, false);
  const auto completed = frameworks_for(snapshot, true);
  json slaves = json::array();
  for (const auto& agent : agents_in(snapshot)) slaves.push_back(view_slave(snapshot, agent));
  Response response;
  response.body.reserve(room_for(frameworks) + room_for(completed));
  JsonWriter writer(response.body);
  writer.begin_object();
  writer.fields(view_version());
  writer.fields(
      {{"start_time", seconds_of(snapshot.started_at)},
       {"elected_time", seconds_of(snapshot.started_at)},
       {"id", snapshot.master_id},
       {"pid", pid},
       {"hostname", options.hostname},
       {"leader", pid},
       {"leader_info",
        {{"id", snapshot.master_id}, {"pid", pid}, {"port", options.port}, {"hostname", options.hostname}}},
       {"activated_slaves", static_cast<double>(snapshot.agents.size())},
       {"deactivated_slaves", 0.0},
       {"unreachable_slaves", 0.0},
       {"flags", view_flags(options)},
       {"slaves", std::move(slaves)},
       {"recovered_slaves", json::array()},
       {"orphan_tasks", json::array()},
       {"unregistered_frameworks", json::array()}});
  writer.key("frameworks");
  write_frameworks(writer, snapshot, frameworks);
  writer.key("completed_frameworks");
  write_frameworks(writer, snapshot, completed);
  writer.end_object();
  return response;
}

Result<Response> write_slaves(const Snapshot& snapshot, const Request& request) {
  json slaves = json::array();
  for (const auto& agent : agents_in(snapshot))
    if (is_wanted(request, "slave_id", agent.agent.id)) slaves.push_back(view_slave(snapshot, agent));
  return compact({{"slaves", std::move(slaves)}, {"recovered_slaves", json::array()}});
}

Result<Response> write_frameworks(const Snapshot& snapshot, const Request& request) {
  Response response;
  JsonWriter writer(response.body);
  writer.begin_object();
  for (const bool removed : {false, true}) {
    auto frameworks = frameworks_for(snapshot, removed);
    std::erase_if(frameworks, [&](const SeenFramework& framework) {
      return !is_wanted(request, "framework_id", framework.id);
    });
    response.body.reserve(response.body.size() + room_for(frameworks));
    writer.key(removed ? "completed_frameworks" : "frameworks");
    write_frameworks(writer, snapshot, frameworks);
  }
  writer.field_raw("unregistered_frameworks", "[]");
  writer.end_object();
  return response;
}

/// The latest first unless `order=asc`; `offset` and `limit` as Mesos has them.
Result<Response> write_tasks(const Snapshot& snapshot, const Request& request) {
  std::vector<SeenFramework> frameworks;
  for (const bool removed : {false, true})
    std::ranges::move(frameworks_for(snapshot, removed), std::back_inserter(frameworks));
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
  Response response;
  JsonWriter writer(response.body);
  writer.begin_object();
  writer.key("tasks");
  writer.begin_array();
  for (auto at = begin; at < end; ++at) write_task(writer, snapshot, *rows[at].framework, *rows[at].task);
  writer.end_array();
  writer.end_object();
  return response;
}

Result<Response> get_flags(const Services& services, const Request&) {
  return compact({{"flags", view_flags(services.mesos->options())}});
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

#include "api/mesos/views.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "api/mesos/seen_task.h"
#include "api/mesos/values.h"
#include "base/json_text.h"

namespace drover::api::mesos {
namespace {

using control::TaskRecord;
using nlohmann::json;

json attributes_of(const Agent& agent) {
  json attributes = json::object();
  for (const auto& [name, values] : agent.attributes)
    attributes[name] = fmt::format("{}", fmt::join(values, ","));
  return attributes;
}

void write_container_status(JsonWriter& writer, const Snapshot& snapshot, const SeenTask& task) {
  writer.begin_object();
  writer.key("container_id");
  writer.begin_object();
  writer.field("value", task.record.task.id);
  writer.end_object();
  writer.key("network_infos");
  writer.begin_array();
  writer.begin_object();
  writer.key("ip_addresses");
  writer.begin_array();
  writer.begin_object();
  writer.field("ip_address", control::address_of(task.record, snapshot.options.ip));
  writer.end_object();
  writer.end_array();
  writer.end_object();
  writer.end_array();
  writer.end_object();
}

void write_statuses(JsonWriter& writer, const Snapshot& snapshot, const SeenTask& task) {
  writer.begin_array();
  task.each_status([&](std::string_view state, TimePoint at) {
    writer.begin_object();
    writer.key("container_status");
    write_container_status(writer, snapshot, task);
    writer.field("state", state);
    writer.field("timestamp", seconds_of(at));
    writer.end_object();
  });
  writer.end_array();
}

/// "limits": {"cpus": 1.5, "mem": "Infinity"}, when there are any.
void write_limits(JsonWriter& writer, const SeenTask& task) {
  if (task.record.task.limits == workload::Limits()) return;
  writer.key("limits");
  writer.begin_object();
  task.each_limit([&](std::string_view name, double amount) {
    if (std::isfinite(amount))
      writer.field(name, amount);
    else
      writer.field(name, "Infinity");
  });
  writer.end_object();
}

void write_discovery(JsonWriter& writer, const SeenTask& task) {
  writer.begin_object();
  writer.field("name", task.name);
  writer.key("ports");
  writer.begin_object();
  writer.key("ports");
  writer.begin_array();
  task.each_port([&](const std::string& name, int number, std::string_view protocol) {
    writer.begin_object();
    if (!name.empty()) writer.field("name", name);
    writer.field("number", number);
    writer.field("protocol", protocol);
    writer.end_object();
  });
  writer.end_array();
  writer.end_object();
  writer.field("visibility", "FRAMEWORK");
  writer.end_object();
}

void write_labels(JsonWriter& writer, const TaskRecord& record) {
  writer.begin_array();
  for (const auto& [key, value] : record.task.labels) {
    writer.begin_object();
    writer.field("key", key);
    writer.field("value", value);
    writer.end_object();
  }
  writer.end_array();
}

}  // namespace

void write(JsonWriter& writer, const control::ResourceAmounts& amounts) {
  writer.begin_object();
  writer.field("cpus", static_cast<double>(amounts.milli_cpus) / 1000);
  writer.field("disk", std::floor(static_cast<double>(amounts.disk_bytes) / kMiB));
  writer.field("gpus", static_cast<double>(amounts.gpus));
  writer.field("mem", std::floor(static_cast<double>(amounts.memory_bytes) / kMiB));
  if (!amounts.ports.empty()) {
    std::string ranges;
    for (const auto& range : amounts.ports)
      fmt::format_to(std::back_inserter(ranges), "{}{}-{}", ranges.empty() ? "[" : ", ", range.begin,
                     range.end);
    writer.field("ports", ranges + "]");
  }
  writer.end_object();
}

json view(const control::ResourceAmounts& amounts) {
  std::string text;
  JsonWriter writer(text);
  write(writer, amounts);
  return json::parse(text);
}

void write_task(JsonWriter& writer, const Snapshot& snapshot, const SeenFramework& framework,
                const TaskRecord& record) {
  const SeenTask task(snapshot, framework, record);
  writer.begin_object();
  writer.field("directory", sandbox_path(snapshot, framework.id, record, task.executor));
  if (task.is_instance()) {
    writer.key("discovery");
    write_discovery(writer, task);
  }
  writer.field("executor_id", task.alone ? "" : task.executor);
  writer.field("framework_id", framework.id);
  writer.field("gpu_uuids", control::uuids_of(record));
  writer.field("id", task.id);
  writer.key("labels");
  write_labels(writer, record);
  write_limits(writer, task);
  writer.field("name", task.name);
  writer.key("resources");
  write(writer, task.held);
  writer.field("role", "*");
  writer.field("slave_id", control::agent_of(*snapshot.state, record));
  writer.field("state", task.state);
  writer.key("statuses");
  write_statuses(writer, snapshot, task);
  writer.field("user", record.task.user.name);
  writer.end_object();
}

namespace {

json roles_in(const json& info) {
  return info.value("roles", json::array({info.value("role", "*")}));
}

void write_tasks(JsonWriter& writer, const Snapshot& snapshot, const SeenFramework& framework, bool ended) {
  writer.begin_array();
  if (!ended || framework.ended > 0)
    for (const auto* record : framework.tasks)
      if (control::is_final(record->state) == ended) write_task(writer, snapshot, framework, *record);
  writer.end_array();
}

}  // namespace

json info_of(const control::FrameworkRecord& record) {
  auto info = json::parse(record.info, nullptr, false);
  return info.is_object() ? info : json::object();
}

std::vector<std::string> roles_of(const control::FrameworkRecord& record) {
  return roles_in(info_of(record)).get<std::vector<std::string>>();
}

json view_framework(const SeenFramework& framework) {
  const auto& record = framework.record;
  const auto info = info_of(record);
  json capabilities = json::array();
  for (const auto& capability : info.value("capabilities", json::array()))
    capabilities.push_back(capability.value("type", "UNKNOWN"));
  auto allocated = framework.used;
  allocated += framework.offered;
  return {{"id", framework.id},
          {"name", record.name},
          {"user", record.user},
          {"principal", info.value("principal", "")},
          {"role", info.value("role", "*")},
          {"roles", roles_in(info)},
          {"hostname", info.value("hostname", "")},
          {"webui_url", info.value("webui_url", "")},
          {"failover_timeout", static_cast<double>(record.failover_timeout.count()) / 1000},
          {"checkpoint", info.value("checkpoint", false)},
          {"capabilities", std::move(capabilities)},
          {"active", framework.connected},
          {"connected", framework.connected},
          {"recovered", false},
          {"registered_time", seconds_of(record.registered_at)},
          {"reregistered_time", seconds_of(record.reregistered_at)},
          {"unregistered_time", record.removed_at ? seconds_of(*record.removed_at) : 0.0},
          {"resources", view(allocated)},
          {"used_resources", view(framework.used)},
          {"offered_resources", view(framework.offered)}};
}

std::vector<SeenAgent> agents_in(const Snapshot& snapshot) {
  auto used = control::held_by_agents(*snapshot.state);
  std::map<std::string, control::ResourceAmounts> offered;
  for (const auto& [id, offer] : snapshot.offers) offered[offer.agent] += offer.amounts;
  std::vector<SeenAgent> agents;
  for (const auto& agent : snapshot.agents)
    agents.push_back({agent, std::move(used[agent.id]), std::move(offered[agent.id])});
  return agents;
}

SeenAgent whole_of(const Snapshot& snapshot) {
  auto agents = agents_in(snapshot);
  if (agents.size() == 1) return std::move(agents.front());
  SeenAgent whole{{control::agent_id(snapshot.state->journal_id), snapshot.options.hostname, {}, {}}, {}, {}};
  for (const auto& [agent, used, offered] : agents) {
    whole.agent.node.gpus_total += agent.node.gpus_total;
    whole.agent.node.milli_cpus_total += agent.node.milli_cpus_total;
    whole.agent.node.memory_bytes_total += agent.node.memory_bytes_total;
    whole.agent.node.disk_bytes += agent.node.disk_bytes;
    whole.used += used;
    whole.offered += offered;
  }
  return whole;
}

json view_slave(const Snapshot& snapshot, const SeenAgent& seen) {
  const auto total = view(total_of(seen.agent.node));
  const auto& options = snapshot.options;
  return {{"id", seen.agent.id},
          {"hostname", seen.agent.hostname},
          {"port", options.port},
          {"pid", fmt::format("slave(1)@{}:{}", options.ip, options.port)},
          {"attributes", attributes_of(seen.agent)},
          {"resources", total},
          {"unreserved_resources", total},
          {"reserved_resources", json::object()},
          {"used_resources", view(seen.used)},
          {"offered_resources", view(seen.offered)},
          {"registered_time", seconds_of(snapshot.started_at)},
          {"active", true},
          {"deactivated", false},
          {"version", kMesosVersion},
          {"capabilities", {"MULTI_ROLE", "HIERARCHICAL_ROLE", "RESERVATION_REFINEMENT"}}};
}

void write_frameworks(JsonWriter& writer, const Snapshot& snapshot,
                      const std::vector<SeenFramework>& frameworks) {
  writer.begin_array();
  for (const auto& framework : frameworks) {
    writer.begin_object();
    writer.fields(view_framework(framework));
    writer.key("tasks");
    write_tasks(writer, snapshot, framework, false);
    writer.key("completed_tasks");
    write_tasks(writer, snapshot, framework, true);
    for (const auto* list : {"unreachable_tasks", "offers"}) writer.field_raw(list, "[]");
    // One port is the master's and the agent's: who asks the agent for its state gets this one.
    write_executors(writer, snapshot, framework, false);
    writer.end_object();
  }
  writer.end_array();
}

std::size_t room_for(const std::vector<SeenFramework>& frameworks) {
  // More than most take, and what is not written to costs nothing.
  constexpr std::size_t kBytesOfFramework = 4000, kBytesOfTask = 2500;
  std::size_t bytes = 0;
  for (const auto& framework : frameworks) bytes += kBytesOfFramework + framework.tasks.size() * kBytesOfTask;
  return bytes;
}

Response compact(const json& value) {
  Response response;
  response.body = to_text(value);
  return response;
}

}  // namespace drover::api::mesos

#include "control/environment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "control/agents.h"

namespace drover::control {
namespace {

using Environment = std::map<std::string, std::string>;

/// As in a name of a shell variable: what is neither a letter nor a digit becomes an underscore.
std::string variable_name(std::string_view text) {
  std::string name;
  for (const char c : text) {
    const bool lower = c >= 'a' && c <= 'z';
    const bool plain = lower || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    name += lower ? static_cast<char>(c - 'a' + 'A') : plain ? c : '_';
  }
  return name;
}

void add_ports(Environment& environment, const TaskRecord& record) {
  const auto& ports = record.task.network.ports;
  if (record.ports.empty()) return;
  for (std::size_t i = 0; i < record.ports.size(); ++i) {
    const auto number = std::to_string(record.ports[i]);
    environment[fmt::format("PORT{}", i)] = number;
    if (i >= ports.size()) continue;
    if (!ports[i].name.empty()) environment["PORT_" + variable_name(ports[i].name)] = number;
    if (ports[i].container_port != 0) environment[fmt::format("PORT_{}", ports[i].container_port)] = number;
  }
  environment["PORT"] = std::to_string(record.ports.front());
  environment["PORTS"] = fmt::format("{}", fmt::join(record.ports, ","));
}

/// "0.5", "2.0": as the JVM writes doubles.
std::string decimal(double value) {
  const auto text = fmt::format("{}", value);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

/// The names are those of Marathon's TaskBuilder.
void add_marathon(Environment& environment, const workload::Task& task) {
  environment["MARATHON_APP_ID"] = task.origin.name;
  environment["MARATHON_APP_VERSION"] = task.origin.version;
  if (task.image) environment["MARATHON_APP_DOCKER_IMAGE"] = *task.image;
  environment["MARATHON_APP_RESOURCE_CPUS"] = decimal(static_cast<double>(task.resources.milli_cpus) / 1000);
  environment["MARATHON_APP_RESOURCE_MEM"] =
      decimal(static_cast<double>(task.resources.memory_bytes) / (1 << 20));
  environment["MARATHON_APP_RESOURCE_DISK"] = "0.0";
  environment["MARATHON_APP_RESOURCE_GPUS"] = std::to_string(task.resources.gpu_count());
  std::vector<std::string> labels;
  for (const auto& [name, value] : task.labels) {
    labels.push_back(variable_name(name));
    environment["MARATHON_APP_LABEL_" + labels.back()] = value;
  }
  environment["MARATHON_APP_LABELS"] = fmt::format("{}", fmt::join(labels, " "));
}

/// As Mesos' agent and its command executor add them. A framework's task has them from its description.
void add_mesos(Environment& environment, const TaskRecord& record, const std::string& id) {
  const auto& origin = record.task.origin;
  if (!origin.task_id.empty()) environment["MESOS_TASK_ID"] = origin.task_id;
  const bool service = origin.kind == workload::OriginKind::kService;
  if (!service && origin.kind != workload::OriginKind::kSchedule) return;
  environment["MESOS_FRAMEWORK_ID"] = service ? marathon_id(id) : chronos_id(id);
  environment["MESOS_AGENT_ID"] = environment["MESOS_SLAVE_ID"] = agent_id(id);
  environment["MESOS_EXECUTOR_ID"] = origin.task_id;
  environment["MESOS_ALLOCATION_ROLE"] = "*";
}

}  // namespace

Environment environment_of(const TaskRecord& record, const std::string& machine, const std::string& id) {
  const auto& task = record.task;
  Environment environment;
  add_ports(environment, record);
  if (task.origin.kind != workload::OriginKind::kPerson) environment["HOST"] = machine;
  if (task.origin.kind == workload::OriginKind::kService) add_marathon(environment, task);
  for (const auto& [name, value] : task.environment) environment[name] = value;
  add_mesos(environment, record, id);
  return environment;
}

}  // namespace drover::control

#include "api/mesos/task_info.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "api/mesos/values.h"

namespace drover::api::mesos {
namespace {

constexpr double kMost = 1e9;
constexpr std::size_t kLongestId = 255;
constexpr std::int64_t kNanosPerMilli = 1'000'000;
/// Between SIGTERM and SIGKILL where nobody says, as Mesos's own executor has it.
constexpr std::chrono::milliseconds kUsualGrace{3000};

/// Mesos keeps three decimals.
std::int64_t thousandths(double value) {
  return static_cast<std::int64_t>(std::llround(value * 1000));
}

Result<double> scalar_of(const v1::Resource& resource) {
  if (resource.type() != v1::Value::SCALAR || !resource.has_scalar())
    return invalid(fmt::format("Invalid scalar resource: '{}'", resource.name()));
  const auto value = resource.scalar().value();
  if (!std::isfinite(value) || value < 0 || value > kMost)
    return invalid(fmt::format("Invalid scalar resource: '{}' is {}", resource.name(), value));
  return value;
}

Status add_ports(const v1::Resource& resource, ResourceAmounts& amounts) {
  if (resource.type() != v1::Value::RANGES) return invalid("Invalid ranges resource: 'ports'");
  for (const auto& range : resource.ranges().range()) {
    if (range.begin() > range.end() || range.begin() == 0 || range.end() > 65535)
      return invalid(fmt::format("Invalid ranges resource: ports:[{}-{}]", range.begin(), range.end()));
    amounts.ports.push_back({static_cast<int>(range.begin()), static_cast<int>(range.end())});
  }
  return {};
}

Status add_resource(const v1::Resource& resource, ResourceAmounts& amounts) {
  const auto& name = resource.name();
  if (resource.has_reservation() || resource.reservations_size() > 0 ||
      (resource.has_role() && resource.role() != "*"))
    return invalid(fmt::format("Reserved resources are not offered here: '{}'", name));
  if (name == "ports") return add_ports(resource, amounts);
  DROVER_TRY(const auto value, scalar_of(resource));
  if (name == "gpus") {
    if (thousandths(value) % 1000 != 0)
      return invalid("Invalid 'gpus' resource: The 'gpus' resource must be an unsigned integer");
    amounts.gpus += static_cast<int>(std::min(value, 1e6));
  } else if (name == "cpus") {
    amounts.milli_cpus += thousandths(value);
  } else if (name == "mem") {
    amounts.memory_bytes += static_cast<std::uint64_t>(value * kMiB);
  } else if (name == "disk") {
    amounts.disk_bytes += static_cast<std::uint64_t>(value * kMiB);
  } else {
    return invalid(fmt::format("There is no resource '{}' here", name));
  }
  return {};
}

void style_it(const ResourceStyle& style, v1::Resource& resource) {
  if (style.with_role) resource.set_role("*");
  if (!style.allocated_to.empty()) resource.mutable_allocation_info()->set_role(style.allocated_to);
}

void add_scalar(const char* name, double value, const ResourceStyle& style, ResourceList& resources) {
  if (value <= 0) return;
  auto& resource = *resources.Add();
  resource.set_name(name);
  resource.set_type(v1::Value::SCALAR);
  resource.mutable_scalar()->set_value(value);
  style_it(style, resource);
}

/// In thousandths or bytes, as many as `unit` a whole one; 0: there is none. No number is below every
/// request.
Result<std::uint64_t> limit_of(double limit, std::uint64_t request, double unit, std::string_view name) {
  if (limit == std::numeric_limits<double>::infinity()) return 0;
  const auto amount =
      limit >= 0 ? static_cast<std::uint64_t>(std::llround(std::min(limit, kMost) * unit)) : 0;
  if (amount < request)
    return invalid(fmt::format("The {0} limit must be greater than or equal to the {0} request", name));
  return amount;
}

Status add_limits(const v1::TaskInfo& info, bool in_group, workload::Task& task) {
  const auto& limits = info.limits();
  if (in_group && !limits.empty() && info.container().linux_info().share_cgroups())
    return invalid(
        "Resource limits may only be set for tasks within a task group when the 'share_cgroups' field is set "
        "to 'false'");
  if (limits.size() > limits.count("cpus") + limits.count("mem"))
    return invalid("Only cpus and mem may be included in a task's resource limits");
  if (const auto cpus = limits.find("cpus"); cpus != limits.end()) {
    const auto request = static_cast<std::uint64_t>(task.resources.milli_cpus);
    if (request == 0) return invalid("When a CPU limit is specified, a CPU request must also be specified");
    DROVER_TRY(const auto milli, limit_of(cpus->second.value(), request, 1000, "cpu"));
    task.limits.milli_cpus = static_cast<std::int64_t>(milli);
  }
  if (const auto memory = limits.find("mem"); memory != limits.end()) {
    const auto request = task.resources.memory_bytes;
    if (request == 0)
      return invalid("When a memory limit is specified, a memory request must also be specified");
    DROVER_TRY(task.limits.memory_bytes, limit_of(memory->second.value(), request, kMiB, "memory"));
  }
  return {};
}

void add_environment(const v1::TaskInfo& info, const LaunchContext& context, workload::Task& task) {
  auto& environment = task.environment.edit();
  environment["MESOS_TASK_ID"] = info.task_id().value();
  environment["MESOS_FRAMEWORK_ID"] = context.framework;
  environment["MESOS_AGENT_ID"] = context.agent;
  environment["MESOS_SLAVE_ID"] = context.agent;
  environment["MESOS_EXECUTOR_ID"] = context.executor.empty() ? info.task_id().value() : context.executor;
  environment["MESOS_ALLOCATION_ROLE"] = context.role;
}

Status check(const v1::TaskInfo& info, const LaunchContext& context, bool in_group) {
  DROVER_CHECK_OK(check_id(info.task_id().value()));
  if (info.agent_id().value() != context.agent)
    return invalid(fmt::format("Task uses invalid agent {} while agent {} is expected",
                               info.agent_id().value(), context.agent));
  if (info.has_executor() && info.has_command())
    return invalid("Task should have at least one (but not both) of CommandInfo or ExecutorInfo present");
  if (info.has_executor() && in_group) return invalid("'TaskInfo.executor' must not be set");
  if (!info.has_command())
    return invalid("Task should have at least one (but not both) of CommandInfo or ExecutorInfo present");
  return {};
}

}  // namespace

Status check_id(const std::string& id) {
  if (id.empty()) return invalid("ID must not be empty");
  if (id.size() > kLongestId)
    return invalid(fmt::format("ID must not be greater than {} characters", kLongestId));
  if (id == "." || id == "..") return invalid(fmt::format("'{}' is disallowed", id));
  for (const unsigned char c : id)
    if (c < 0x21 || c == 0x7f || c == '/' || c == '\\')
      return invalid(fmt::format("'{}' contains invalid characters", id));
  return {};
}

Status read_command(const v1::CommandInfo& command, workload::Task& task) {
  task.command = words_of(command);
  DROVER_CHECK_OK(read_environment(command.environment(), task));
  for (const auto& uri : command.uris())
    task.fetch.edit().push_back(
        {uri.value(), uri.extract(), uri.executable(), uri.cache(), uri.output_file()});
  return {};
}

void add_ports(const ResourceAmounts& amounts, workload::Task& task) {
  if (!task.network.ports.empty()) return;
  for (const auto& range : amounts.ports)
    for (int port = range.begin; port <= range.end; ++port) task.network.ports.push_back({.host_port = port});
}

std::optional<std::chrono::milliseconds> grace_of(const v1::KillPolicy& policy) {
  if (!policy.has_grace_period()) return std::nullopt;
  return std::chrono::milliseconds(
      std::max<std::int64_t>(0, policy.grace_period().nanoseconds() / kNanosPerMilli));
}

std::vector<std::string> words_of(const v1::CommandInfo& command) {
  if (command.has_value() && command.shell()) return {"/bin/sh", "-c", command.value()};
  std::vector<std::string> words;
  // The first argument is what the program finds as its own name.
  if (command.has_value()) words.push_back(command.value());
  for (int i = command.has_value() ? 1 : 0; i < command.arguments_size(); ++i)
    words.push_back(command.arguments(i));
  return words;
}

Result<ResourceAmounts> read_resources(const ResourceList& resources) {
  constexpr int kMostResources = 1000;  // so many of kMost each can be added up
  if (resources.size() > kMostResources)
    return invalid(fmt::format("More than {} resources", kMostResources));
  ResourceAmounts given;
  for (const auto& resource : resources) DROVER_CHECK_OK(add_resource(resource, given));
  ResourceAmounts amounts;
  amounts += given;  // brings the ports into order, once
  return amounts;
}

void write_resources(const ResourceAmounts& amounts, const ResourceStyle& style, ResourceList& resources) {
  if (!amounts.ports.empty()) {
    auto& ports = *resources.Add();
    ports.set_name("ports");
    ports.set_type(v1::Value::RANGES);
    for (const auto& range : amounts.ports) {
      auto& written = *ports.mutable_ranges()->add_range();
      written.set_begin(static_cast<std::uint64_t>(range.begin));
      written.set_end(static_cast<std::uint64_t>(range.end));
    }
    style_it(style, ports);
  }
  std::array scalars = {
      std::pair("cpus", static_cast<double>(amounts.milli_cpus) / 1000),
      std::pair("mem", std::floor(static_cast<double>(amounts.memory_bytes) / kMiB)),
      std::pair("disk", std::floor(static_cast<double>(amounts.disk_bytes) / kMiB)),
      std::pair("gpus", static_cast<double>(amounts.gpus)),
  };
  if (style.by_name) std::ranges::rotate(scalars.begin() + 1, scalars.begin() + 2, scalars.end());
  for (const auto& [name, value] : scalars) add_scalar(name, value, style, resources);
}

v1::TaskState state_named(const std::string& name) {
  v1::TaskState state = v1::TASK_LOST;
  v1::TaskState_Parse(name, &state);
  return state;
}

std::string user_of(const v1::TaskInfo& info, const std::string& default_user) {
  const auto& named = info.has_executor() ? info.executor().command().user() : info.command().user();
  return named.empty() ? default_user : named;
}

Result<workload::Task> read_task(const v1::TaskInfo& info, const LaunchContext& context, bool in_group) {
  DROVER_CHECK_OK(check(info, context, in_group));
  auto amounts = read_resources(info.resources());
  if (!amounts) return invalid("Task uses invalid resources: " + amounts.error().message);
  if (amounts->milli_cpus == 0 && amounts->memory_bytes == 0 && amounts->gpus == 0)
    return invalid("Task uses no resources");
  const auto user_name = user_of(info, context.default_user);
  const auto user = context.users.find(user_name);
  if (user == context.users.end())
    return invalid(fmt::format("Not authorized to launch as user '{}'", user_name));
  workload::Task task;
  task.name = info.name();
  task.user = user->second;
  task.owner = context.owner;
  task.owner_name = context.owner_name;
  task.origin = {workload::OriginKind::kFramework, context.framework, info.task_id().value(), ""};
  task.resources = {};
  if (amounts->gpus > 0) task.resources.gpus.push_back({amounts->gpus, {}});
  task.resources.milli_cpus = amounts->milli_cpus;
  task.resources.memory_bytes = amounts->memory_bytes;
  if (!context.host.empty()) task.resources.attributes.push_back({"hostname", {context.host}});
  DROVER_CHECK_OK(add_limits(info, in_group, task));
  DROVER_CHECK_OK(read_command(info.command(), task));
  if (info.has_container()) DROVER_CHECK_OK(read_container(info.container(), task));
  if (task.command.empty() && !task.image) return invalid("Command must have a value");
  add_ports(*amounts, task);
  add_environment(info, context, task);
  for (const auto& label : info.labels().labels()) task.labels.edit()[label.key()] = label.value();
  task.grace = grace_of(info.kill_policy()).value_or(kUsualGrace);
  if (info.has_max_completion_time())
    task.timeout = std::chrono::milliseconds(
        std::max<std::int64_t>(1, info.max_completion_time().nanoseconds() / kNanosPerMilli));
  return task;
}

}  // namespace drover::api::mesos

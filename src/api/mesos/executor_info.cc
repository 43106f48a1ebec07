#include "api/mesos/executor_info.h"

#include <fmt/format.h>

#include "api/executor_tokens.h"
#include "api/mesos/protobuf_json.h"
#include "api/mesos/values.h"

namespace drover::api::mesos {
namespace {

using control::ExecutorLaunch;
using v1::ExecutorInfo;

constexpr std::int64_t kNanosOfMilli = 1'000'000;
/// From SIGTERM to SIGKILL, as agents of Mesos have it.
constexpr std::chrono::milliseconds kShutdownGrace{5000};

/// "900secs", as Mesos reads durations.
std::string seconds_text(std::chrono::milliseconds duration) {
  return fmt::format("{:g}secs", static_cast<double>(duration.count()) / 1000);
}

Status check_executor(const ExecutorInfo& executor, const LaunchContext& context,
                      const ExecutorPlace& place) {
  DROVER_CHECK_OK(check_id(executor.executor_id().value()));
  if (executor.has_framework_id() && executor.framework_id().value() != context.framework)
    return invalid(fmt::format("ExecutorInfo has an invalid FrameworkID (Actual: {} vs Expected: {})",
                               executor.framework_id().value(), context.framework));
  if (executor.type() == ExecutorInfo::DEFAULT)
    return invalid("Executors of type DEFAULT run task groups: launch the task with LAUNCH_GROUP");
  if (!executor.has_command()) return invalid("'ExecutorInfo.command' must be set for 'CUSTOM' executor");
  if (place.endpoint.empty() && place.in_pods)
    return invalid(
        "Executors of frameworks reach this daemon from their pods, and it does not know where: start it "
        "with "
        "--listen and --executor-endpoint");
  if (place.endpoint.empty())
    return invalid(
        "Executors of frameworks reach this daemon over TCP, and it does not listen there: start it with "
        "--listen 127.0.0.1:5050");
  return {};
}

Status check_task(const v1::TaskInfo& info, const ExecutorInfo& executor, const LaunchContext& context,
                  bool in_group) {
  DROVER_CHECK_OK(check_id(info.task_id().value()));
  if (info.agent_id().value() != context.agent)
    return invalid(fmt::format("Task uses invalid agent {} while agent {} is expected",
                               info.agent_id().value(), context.agent));
  if (in_group && info.has_executor()) return invalid("'TaskInfo.executor' must not be set");
  if (in_group) return {};
  if (info.has_command())
    return invalid("Task should have at least one (but not both) of CommandInfo or ExecutorInfo present");
  if (to_json(info.executor()) != to_json(executor))
    return invalid(fmt::format("The tasks of one launch describe executor '{}' differently",
                               executor.executor_id().value()));
  return {};
}

Result<ExecutorLaunch::Task> read_task_of(const v1::TaskInfo& info) {
  auto amounts = read_resources(info.resources());
  if (!amounts) return invalid("Task uses invalid resources: " + amounts.error().message);
  if (*amounts == ResourceAmounts{}) return invalid("Task uses no resources");
  return ExecutorLaunch::Task{info.task_id().value(), info.name(), to_json(info), std::move(*amounts)};
}

void add_executor_environment(const ExecutorInfo& executor, const LaunchContext& context,
                              const ExecutorPlace& place, workload::Task& task) {
  auto& environment = task.environment.edit();
  environment["MESOS_FRAMEWORK_ID"] = context.framework;
  environment["MESOS_EXECUTOR_ID"] = executor.executor_id().value();
  environment["MESOS_AGENT_ID"] = environment["MESOS_SLAVE_ID"] = context.agent;
  environment["MESOS_ALLOCATION_ROLE"] = context.role;
  environment["MESOS_AGENT_ENDPOINT"] = place.endpoint;
  environment["MESOS_SLAVE_PID"] = "slave(1)@" + place.endpoint;
  // On its own network it finds its own.
  if (!place.in_pods) environment["LIBPROCESS_IP"] = place.endpoint.substr(0, place.endpoint.rfind(':'));
  environment["LIBPROCESS_PORT"] = "0";
  // Whatever its framework says: the daemon finds it again after a restart.
  environment["MESOS_CHECKPOINT"] = "1";
  environment["MESOS_RECOVERY_TIMEOUT"] = seconds_text(place.timeouts.recovery);
  environment["MESOS_SUBSCRIPTION_BACKOFF_MAX"] = "2secs";
  environment["MESOS_EXECUTOR_SHUTDOWN_GRACE_PERIOD"] = seconds_text(task.grace);
  environment[kExecutorToken] = "";  // put in when the container is made
}

Result<workload::Task> container_of(const ExecutorInfo& executor, const LaunchContext& context,
                                    const ResourceAmounts& given, const ExecutorPlace& place) {
  const auto& id = executor.executor_id().value();
  const auto& command = executor.command();
  const auto user_name = command.user().empty() ? context.default_user : command.user();
  const auto user = context.users.find(user_name);
  if (user == context.users.end())
    return invalid(fmt::format("Not authorized to launch as user '{}'", user_name));
  workload::Task task;
  task.name = executor.name().empty() ? id : executor.name();
  task.user = user->second;
  task.owner = context.owner;
  task.owner_name = context.owner_name;
  task.origin = {workload::OriginKind::kFramework, context.framework, id, ""};
  task.resources = {};
  if (given.gpus > 0) task.resources.gpus.push_back({given.gpus, {}});
  task.resources.milli_cpus = given.milli_cpus;
  task.resources.memory_bytes = given.memory_bytes;
  if (!context.host.empty()) task.resources.attributes.push_back({"hostname", {context.host}});
  DROVER_CHECK_OK(read_command(command, task));
  if (executor.has_container()) DROVER_CHECK_OK(read_container(executor.container(), task));
  if (!place.in_pods && task.network.mode != workload::NetworkMode::kHost)
    return invalid(
        "Executors of frameworks reach the daemon over the machine's own network: ask for the network HOST");
  if (task.command.empty() && !task.image) return invalid("Command must have a value");
  add_ports(given, task);
  for (const auto& label : executor.labels().labels()) task.labels.edit()[label.key()] = label.value();
  task.grace = executor.has_shutdown_grace_period()
                   ? std::chrono::milliseconds(std::max<std::int64_t>(
                         0, executor.shutdown_grace_period().nanoseconds() / kNanosOfMilli))
                   : kShutdownGrace;
  add_executor_environment(executor, context, place, task);
  return task;
}

}  // namespace

Result<ExecutorLaunch> read_executor(const ExecutorInfo& executor,
                                     const std::vector<const v1::TaskInfo*>& infos,
                                     const LaunchContext& context, bool in_group,
                                     const ExecutorPlace& place) {
  DROVER_CHECK_OK(check_executor(executor, context, place));
  auto given = read_resources(executor.resources());
  if (!given) return invalid("Executor uses invalid resources: " + given.error().message);
  ExecutorLaunch launch;
  launch.framework = context.framework;
  launch.executor_id = executor.executor_id().value();
  launch.in_group = in_group;
  launch.host = context.host;
  for (const auto* info : infos) {
    DROVER_CHECK_OK(check_task(*info, executor, context, in_group));
    DROVER_TRY(auto task, read_task_of(*info));
    *given += task.amounts;
    launch.tasks.push_back(std::move(task));
  }
  if (given->milli_cpus == 0 && given->memory_bytes == 0) return invalid("Task uses no resources");
  launch.given = *given;
  DROVER_TRY(launch.container, container_of(executor, context, *given, place));
  auto described = executor;
  described.mutable_framework_id()->set_value(context.framework);
  launch.info = to_json(described);
  return launch;
}

}  // namespace drover::api::mesos

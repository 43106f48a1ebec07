#pragma once

// From what a framework writes to what Drover runs: resources, and tasks. Mistakes are told in the words of
// Mesos, which frameworks show to people. Pure.

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "api/mesos/protocol.h"
#include "control/resource_amounts.h"
#include "workload/service.h"
#include "workload/task.h"

namespace drover::api::mesos {

using control::ResourceAmounts;
using ResourceList = google::protobuf::RepeatedPtrField<v1::Resource>;

/// "Invalid 'gpus' resource: The 'gpus' resource must be an unsigned integer"
Result<ResourceAmounts> read_resources(const ResourceList& resources);

/// How resources are shown to one framework, or to operators.
struct ResourceStyle {
  bool with_role = true;          ///< "role":"*"; not to those that know reservation refinement
  std::string allocated_to = {};  ///< role of `allocation_info`; "" for none
  bool by_name = false;           ///< after the ports
};
void write_resources(const ResourceAmounts& amounts, const ResourceStyle& style, ResourceList& resources);

/// TASK_LOST when there is no such.
v1::TaskState state_named(const std::string& name);

/// Whom and what for a task runs.
struct LaunchContext {
  std::string framework;
  std::string agent;
  std::map<std::string, User> users;  ///< by name: those that tasks may name
  std::string default_user;           ///< of the framework
  uid_t owner = 0;
  std::string owner_name;
  std::string executor = {};  ///< of a group; "" for a task that is its own
  std::string role = "*";     ///< for which the resources were offered
  std::string host = {};      ///< of a cluster, that of the agent; "" for one machine
};

/// What tells whether the task is well, if anything does. The ports that it names are the task's own.
Result<std::optional<workload::HealthCheck>> read_health_check(const v1::TaskInfo& info,
                                                               const workload::Task& task);
/// What is to be told of the task and has no consequences, if anything is.
Result<std::optional<workload::HealthCheck>> read_check(const v1::TaskInfo& info, const workload::Task& task);

/// What a command runs: "value" by a shell, or a program with its arguments.
std::vector<std::string> words_of(const v1::CommandInfo& command);

/// Between SIGTERM and SIGKILL; none when the policy does not say.
std::optional<std::chrono::milliseconds> grace_of(const v1::KillPolicy& policy);

/// Image, network, volumes and the parameters of Docker. What cannot be kept is a mistake, in words.
Status read_container(const v1::ContainerInfo& container, workload::Task& task);
Status read_environment(const v1::Environment& environment, workload::Task& task);

/// Of a task, a command or an executor: what `validateID` of Mesos refuses.
Status check_id(const std::string& id);
/// What it runs, its environment, and the files that are brought to it.
Status read_command(const v1::CommandInfo& command, workload::Task& task);
/// The ports of the offer that were accepted and are not mapped are the machine's own.
void add_ports(const ResourceAmounts& amounts, workload::Task& task);

/// Name of the user that the task, or its executor, runs as.
std::string user_of(const v1::TaskInfo& info, const std::string& default_user);

/// A task as it is submitted; the id is left empty. The error's message is that of TASK_ERROR.
Result<workload::Task> read_task(const v1::TaskInfo& info, const LaunchContext& context, bool in_group);

}  // namespace drover::api::mesos

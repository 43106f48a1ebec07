#include "api/native/measured.h"

#include <nlohmann/json.hpp>
#include <set>

#include "api/workers.h"
#include "metrics/processes.h"

namespace drover::api {
namespace {

using engine::Views;
using nlohmann::json;

/// As one caller sees them.
struct Owners {
  std::map<std::string, std::vector<metrics::Owner>> by_gpu;
  std::map<std::string, metrics::Owner, std::less<>> by_task;
};

Owners owners_of(const std::vector<Views::Holder>& holders) {
  Owners owners;
  std::map<std::string, std::set<metrics::Owner>> by_gpu;
  for (const auto& holder : holders) {
    metrics::Owner owner{{"user", holder.user}, {"task_id", holder.task_id}};
    if (!holder.task_id.empty()) owners.by_task[holder.task_id] = owner;
    by_gpu[holder.uuid].insert(std::move(owner));
  }
  for (const auto& [uuid, found] : by_gpu) owners.by_gpu[uuid] = {found.begin(), found.end()};
  return owners;
}

/// A task's group has its name.
metrics::OwnerOf owner_by_cgroup(const std::map<std::string, metrics::Owner, std::less<>>& by_task) {
  return [&by_task](std::string_view cgroups) {
    for (const auto name : metrics::cgroup_names(cgroups))
      if (const auto found = by_task.find(name); found != by_task.end()) return found->second;
    return metrics::Owner{};
  };
}

/// What its owner bears under that name; "" when it is in no task.
std::string label_of(const metrics::ProcessFacts& process, std::string_view name) {
  for (const auto& [label, value] : process.owner)
    if (label == name) return value;
  return "";
}

/// "" when it is in none.
std::string task_of(const metrics::MachineFacts& machine, std::uint32_t pid) {
  const auto found = machine.processes.find(pid);
  return found == machine.processes.end() ? "" : label_of(found->second, "task_id");
}

/// What the daemon tells of shares names their tasks, of which the caller may not see all.
void name_owners(metrics::MachineFacts& machine, const Owners& seen) {
  for (auto& [uuid, shares] : machine.shares) {
    std::erase_if(shares,
                  [&](const auto& share) { return !seen.by_task.contains(share.owner.front().second); });
    for (auto& share : shares) share.owner = seen.by_task.at(share.owner.front().second);
  }
}

std::map<std::string, ForeignProcesses> foreign_of(const metrics::MachineFacts& machine) {
  std::map<std::string, ForeignProcesses> foreign;
  for (const auto& [uuid, usage] : machine.usage)
    for (const auto& process : usage.processes) {
      if (!task_of(machine, process.pid).empty()) continue;
      ++foreign[uuid].count;
      foreign[uuid].memory_bytes += process.memory_bytes.value_or(0);
    }
  return foreign;
}

/// Of the processes, those of tasks that the caller does not see, and with them those of nobody.
void leave_out(metrics::MachineFacts& machine, const Owners& seen) {
  for (auto& [uuid, usage] : machine.usage)
    std::erase_if(usage.processes, [&](const gpu::ProcessUsage& process) {
      return !seen.by_task.contains(task_of(machine, process.pid));
    });
}

json optional(const gpu::Reading& reading) {
  return reading ? json(*reading) : json(nullptr);
}

json view_process(const gpu::ProcessUsage& process, const metrics::MachineFacts& machine) {
  json shown = {{"pid", process.pid},
                {"memory_bytes", optional(process.memory_bytes)},
                {"gpu_percent", optional(process.sm_percent)},
                {"name", nullptr},
                {"task", nullptr},
                {"user", nullptr},
                {"uid", nullptr},
                {"container_pid", nullptr},
                {"container", nullptr}};
  const auto found = machine.processes.find(process.pid);
  if (found == machine.processes.end()) return shown;
  const auto& facts = found->second;
  shown["name"] = facts.name;
  if (facts.uid) shown["uid"] = *facts.uid;
  if (facts.inner_pid) shown["container_pid"] = *facts.inner_pid;
  for (const auto& [field, text] :
       {std::pair("task", label_of(facts, "task_id")), std::pair("user", label_of(facts, "user")),
        std::pair("container", facts.container)})
    if (!text.empty()) shown[field] = text;
  return shown;
}

}  // namespace

asio::awaitable<Result<Measured>> measure(const Services& services, const engine::Caller& caller) {
  if (!services.measure_gpus)
    co_return fail(ErrorKind::kUnsupported, "This daemon does not look at what its GPUs do");
  Measured measured{co_await callback_result<metrics::MachineFacts>(services.measure_gpus), {}};
  const auto all_holders = services.daemon->holders({});
  const auto holders = services.daemon->holders(caller);
  const auto read_processes = [&] {
    auto& machine = measured.machine;
    const auto owners = owners_of(holders());
    machine.holders = owners.by_gpu;
    name_owners(machine, owners);
    const auto all = owners_of(all_holders());
    machine.processes = metrics::read_processes("/proc", machine.usage, owner_by_cgroup(all.by_task));
    measured.foreign = foreign_of(machine);
    if (!caller.is_root()) leave_out(machine, owners);
    return Result<bool>(true);
  };
  DROVER_CO_CHECK_OK(co_await on_pool(services.workers->files, caller.user.uid, read_processes));
  co_return measured;
}

json view_usage(const Measured& measured, const std::string& uuid) {
  const auto& machine = measured.machine;
  const auto usage = machine.usage.find(uuid);
  if (usage == machine.usage.end() || !usage->second.answers) return nullptr;
  const auto& now = usage->second;
  json processes = json::array();
  for (const auto& process : now.processes) processes.push_back(view_process(process, machine));
  const auto foreign = measured.foreign.find(uuid);
  const auto others = foreign == measured.foreign.end() ? ForeignProcesses{} : foreign->second;
  return {{"gpu_percent", optional(now.gpu_percent)},
          {"memory_used_bytes", optional(now.memory.used)},
          {"temperature", optional(now.temperature)},
          {"power_mw", optional(now.power_mw)},
          {"processes", std::move(processes)},
          {"foreign", {{"processes", others.count}, {"memory_bytes", others.memory_bytes}}}};
}

}  // namespace drover::api

// What the GPUs do, and the tasks that have them, as Prometheus reads it. Everybody may see the GPUs and
// whose they are, as in /v1/gpus; which task it is, and its processes, only its owner and root.

#include <algorithm>
#include <iterator>
#include <set>

#include "api/async.h"
#include "api/native/handlers.h"
#include "api/workers.h"
#include "metrics/daemon_metrics.h"
#include "metrics/gpu_metrics.h"
#include "metrics/processes.h"

namespace drover::api {
namespace {

/// As one caller sees them.
struct Owners {
  std::map<std::string, std::vector<metrics::Owner>> by_gpu;
  std::map<std::string, metrics::Owner, std::less<>> by_task;
};

Owners owners_for(const engine::Caller& caller, const engine::Api& daemon) {
  Owners owners;
  std::map<std::string, std::set<metrics::Owner>> by_gpu;
  for (const auto& holder : daemon.holders(caller)) {
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

void leave_out_what_is_nobodys(metrics::MachineFacts& machine) {
  for (auto& [uuid, usage] : machine.usage)
    std::erase_if(usage.processes, [&](const gpu::ProcessUsage& process) {
      const auto found = machine.processes.find(process.pid);
      return found == machine.processes.end() || found->second.owner.empty();
    });
}

metrics::PoolFacts pool_facts(std::string name, const FairPool& pool) {
  const auto [running, waiting] = pool.totals();
  return {std::move(name), running, waiting};
}

void count_tasks(const control::State& state, metrics::DaemonFacts& facts) {
  std::map<control::TaskState, std::size_t> counts;
  for (const auto& [id, record] : state.tasks) ++counts[record.state];
  for (const auto& [state_of_task, count] : counts)
    facts.tasks[std::string(control::to_string(state_of_task))] = count;
}

/// All but the tasks.
metrics::DaemonFacts facts_of(const Services& services) {
  metrics::DaemonFacts facts;
  facts.version = services.version;
  services.daemon->add_facts(facts);
  facts.answers = services.tally->answers;
  facts.refused_connections = services.tally->refused_connections;
  const auto& workers = *services.workers;
  facts.pools = {pool_facts("files", workers.files), pool_facts("lists", workers.lists),
                 pool_facts("removals", workers.removals), pool_facts("endings", workers.endings)};
  if (services.add_facts) services.add_facts(facts);
  return facts;
}

}  // namespace

asio::awaitable<Result<Response>> get_metrics(const Services& services, const Request& request) {
  DROVER_CO_CHECK_OK(Query(request).finish());
  if (!services.measure_gpus)
    co_return fail(ErrorKind::kUnsupported, "This daemon does not look at what its GPUs do");
  auto machine = co_await callback_result<metrics::MachineFacts>(services.measure_gpus);
  const auto owners = owners_for(*request.caller, *services.daemon);
  const bool all = request.caller->is_root();
  // Who else works here, and how much, is nobody's but root's.
  auto facts = all ? facts_of(services) : metrics::DaemonFacts{};
  const auto state = services.daemon->snapshot();
  const auto write = [&]() -> Result<std::string> {
    if (all) count_tasks(*state, facts);
    auto families = all ? metrics::daemon_families(facts) : std::vector<metrics::Family>{};
    machine.holders = owners.by_gpu;
    machine.processes = metrics::read_processes("/proc", machine.usage, owner_by_cgroup(owners.by_task));
    if (!all) leave_out_what_is_nobodys(machine);
    std::ranges::move(metrics::gpu_families(machine), std::back_inserter(families));
    return metrics::write(families);
  };
  Response response;
  response.content_type = metrics::kContentType;
  DROVER_CO_TRY(response.body, co_await on_pool(services.workers->files, request.caller->user.uid, write));
  co_return response;
}

}  // namespace drover::api

// What the GPUs do, and the tasks that have them, as Prometheus reads it.

#include <algorithm>
#include <iterator>

#include "api/async.h"
#include "api/native/handlers.h"
#include "api/native/measured.h"
#include "api/workers.h"
#include "metrics/daemon_metrics.h"
#include "metrics/gpu_metrics.h"

namespace drover::api {
namespace {

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
                 pool_facts("submissions", workers.submissions), pool_facts("removals", workers.removals),
                 pool_facts("endings", workers.endings)};
  if (services.add_facts) services.add_facts(facts);
  return facts;
}

}  // namespace

asio::awaitable<Result<Response>> get_metrics(const Services& services, const Request& request) {
  DROVER_CO_CHECK_OK(Query(request).finish());
  DROVER_CO_TRY(auto measured, co_await measure(services, *request.caller));
  const bool all = request.caller->is_root();
  // Who else works here, and how much, is nobody's but root's.
  auto facts = all ? facts_of(services) : metrics::DaemonFacts{};
  const auto state = services.daemon->snapshot();
  const auto write = [&]() -> Result<std::string> {
    if (all) count_tasks(*state, facts);
    auto families = all ? metrics::daemon_families(facts) : std::vector<metrics::Family>{};
    std::ranges::move(metrics::gpu_families(measured.machine), std::back_inserter(families));
    return metrics::write(families);
  };
  Response response;
  response.content_type = metrics::kContentType;
  DROVER_CO_TRY(response.body, co_await on_pool(services.workers->files, request.caller->user.uid, write));
  co_return response;
}

}  // namespace drover::api

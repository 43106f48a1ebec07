// What the GPUs do, and the tasks that have them, as Prometheus reads it.

#include <algorithm>
#include <iterator>

#include "api/async.h"
#include "api/marathon/world.h"
#include "api/native/handlers.h"
#include "api/native/measured.h"
#include "api/workers.h"
#include "control/sharing.h"
#include "engine/images.h"
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

std::optional<double> gpus(const std::optional<std::int64_t>& milli) {
  return milli ? std::optional(static_cast<double>(*milli) / 1000) : std::nullopt;
}

void add_queues(const control::State& state, TimePoint now, metrics::DaemonFacts& facts) {
  std::map<std::string, metrics::QueueFacts> queues{{std::string(placement::kDefaultQueue), {}}};
  for (const auto& [path, queue] : state.rules.queues) {
    queues[path].limit_gpus = gpus(queue.limit.gpu_milli);
    queues[path].guaranteed_gpus = gpus(queue.guarantee.gpu_milli);
  }
  for (const auto& [sequence, waiting] : state.queue) {
    if (waiting.held) continue;
    auto& queue = queues[waiting.queue];
    ++queue.waiting;
    const std::chrono::duration<double> waited = now - state.tasks.at(waiting.id).submitted_at;
    queue.longest_wait = std::max(queue.longest_wait, waited.count());
  }
  for (auto& [path, queue] : queues) {
    queue.path = path;
    queue.used_gpus = static_cast<double>(control::used_in(state, path).gpu_milli) / 1000;
    facts.queues.push_back(std::move(queue));
  }
}

void add_apps(const marathon_v2::World& world, metrics::DaemonFacts& facts) {
  for (const auto* service : world.services()) {
    const auto counts = world.counts(*service);
    facts.apps.push_back(
        {service->target.id, service->target.instances, counts.running, counts.healthy, counts.unhealthy});
  }
}

/// All but tasks, queues and apps.
metrics::DaemonFacts facts_of(const Services& services) {
  metrics::DaemonFacts facts;
  facts.version = services.version;
  services.daemon->add_facts(facts);
  facts.answers = services.tally->answers;
  facts.answer_times = services.tally->answer_times.samples();
  facts.refused_connections = services.tally->refused_connections;
  if (services.images != nullptr) facts.pulls = services.images->running();
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
  const auto scene = marathon_v2::scene_of(services, *request.caller);
  const auto write = [&]() -> Result<std::string> {
    if (all) {
      count_tasks(*scene.state, facts);
      add_queues(*scene.state, scene.now, facts);
      add_apps(marathon_v2::World(scene, marathon_v2::Scope::kAll), facts);
    }
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

#include "placement/schedule.h"

#include <fmt/format.h>

#include "placement/schedule/planner.h"

namespace drover::placement {
namespace {

/// A limit that the job alone is over, as an error.
Status within(const Limits& limits, const schedule::Load& demand, const std::string& whose) {
  const auto bounds = schedule::bounds_of(limits);
  constexpr const char* kPaths[] = {"/gpus", "/cpus", "/memory"};
  for (std::size_t i = 0; i < schedule::kDimensions; ++i)
    if (bounds[i] && demand[i] > *bounds[i])
      return fail(ErrorKind::kInvalid,
                  fmt::format("{} may hold at most {}, and {} are asked for", whose,
                              schedule::amount_text(i, *bounds[i]), schedule::amount_text(i, demand[i])),
                  "ask for less, or for a higher limit", kPaths[i]);
  return {};
}

}  // namespace

std::string allocation_id(const Job& job, std::size_t rank) {
  return job.gang.members.size() == 1 ? job.id : fmt::format("{}/{}", job.id, rank);
}

Plan plan(Cluster& cluster, const Rules& rules, const std::vector<Job>& waiting,
          const std::vector<RunningJob>& running, TimePoint now, const std::vector<DisruptionBudget>& budgets,
          const OnStart& on_start) {
  return schedule::Planner(cluster, rules, waiting, running, now, budgets, on_start).run();
}

std::optional<std::chrono::milliseconds> length_of(const Job& job) {
  if (!job.expected || !job.time_limit) return job.expected ? job.expected : job.time_limit;
  return std::min(*job.expected, *job.time_limit);
}

Status possible(const Cluster& cluster, const Rules& rules, const Job& job) {
  DROVER_CHECK_OK(possible(cluster, job.gang));
  const auto demand = schedule::demand_of(cluster, job.gang).total();
  for (const auto& [whose, limit] : bounds_on(rules, job.queue, job.user, job.name_space))
    DROVER_CHECK_OK(within(limit, demand, whose));
  return {};
}

ResourceAmounts amounts_of(const Cluster& cluster, const Gang& gang) {
  const auto load = schedule::demand_of(cluster, gang).total();
  return {load[0], load[1], static_cast<std::uint64_t>(load[2])};
}

}  // namespace drover::placement

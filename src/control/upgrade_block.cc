#include "control/upgrade_block.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "control/instances.h"
#include "control/planning.h"

namespace drover::control {
namespace {

/// How many of the old ones have to end before the task can start; none when that does not help.
std::optional<std::size_t> to_end_first(const State& state, const std::vector<const TaskRecord*>& old,
                                        const workload::Task& task) {
  placement::Cluster cluster(state.cluster);
  const auto request = request_of(task);
  if (cluster.try_place(request)) return std::nullopt;
  for (std::size_t i = 0; i < old.size(); ++i) {
    cluster.release(old[i]->task.id);
    if (cluster.try_place(request)) return i + 1;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> upgrade_block(const State& state, const std::string& service) {
  const auto found = state.services.find(service);
  if (found == state.services.end() || found->second.applied.id.empty()) return std::nullopt;
  const auto& record = found->second;
  const Draft draft(state, TimePoint{});
  const auto instances = instances_of(draft, record);
  if (instances.old.empty() || !instances.stopping.empty()) return std::nullopt;
  const TaskRecord* waiting = nullptr;
  for (const auto* task : instances.current) {
    if (task->state == TaskState::kQueued)
      waiting = waiting == nullptr ? task : waiting;
    else if (!is_up(draft, record, *task))
      return std::nullopt;  // when it is up, an old one may end
  }
  if (waiting == nullptr) return std::nullopt;
  const auto ends = to_end_first(state, instances.old, waiting->task);
  if (!ends) return std::nullopt;
  const auto wanted = static_cast<double>(record.applied.instances);
  const auto part = std::max(0.0, std::floor((wanted - static_cast<double>(*ends)) / wanted * 100) / 100);
  return fmt::format(
      "its old version keeps its place until the new one is up: set minimumHealthCapacity of upgradeStrategy "
      "to "
      "{:g}, and force that change, so that {} first",
      part, *ends == 1 ? "an old instance ends" : fmt::format("{} old instances end", *ends));
}

}  // namespace drover::control

#include "control/invariants.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "control/sharing.h"

namespace drover::control {
namespace {

using Records = std::vector<const TaskRecord*>;
/// Of all who own something: looked for when they matter.
using Owners = std::function<const Records&()>;

Error broken(std::string what) {
  return {ErrorKind::kInternal, fmt::format("Drover was about to start work wrongly, and did not: {}", what),
          "this is a mistake of Drover: please report it, with the log", ""};
}

/// Who owns something once the outcome counts. Looks at all that runs.
Records owners_after(const State& state, const Outcome& outcome) {
  std::set<std::string> changed(outcome.removed.begin(), outcome.removed.end());
  Records owners;
  for (const auto& record : outcome.changed) {
    changed.insert(record.task.id);
    if (owns_resources(record.state)) owners.push_back(&record);
  }
  for (const auto& id : state.active)
    if (!changed.contains(id)) owners.push_back(&state.tasks.at(id));
  return owners;
}

/// Whether it has more of a GPU than it had.
bool grows(const TaskRecord& before, const TaskRecord& after) {
  return std::ranges::any_of(after.gpus, [&](const placement::Grant& grant) {
    const auto same = std::ranges::find(before.gpus, grant.uuid, &placement::Grant::uuid);
    return same == before.gpus.end() || grant.milli > same->milli || grant.memory_bytes > same->memory_bytes;
  });
}

Records starts_of(const State& state, const Outcome& outcome) {
  Records starts;
  for (const auto& record : outcome.changed) {
    const auto* before = state.find(record.task.id);
    if (owns_resources(record.state) && (before == nullptr || !owns_resources(before->state)))
      starts.push_back(&record);
  }
  return starts;
}

/// Those who are given more of their GPUs while they run.
Records grown_in(const State& state, const Outcome& outcome) {
  Records grown;
  for (const auto& record : outcome.changed) {
    const auto* before = state.find(record.task.id);
    if (before == nullptr || !owns_resources(before->state) || !owns_resources(record.state)) continue;
    if (grows(*before, record)) grown.push_back(&record);
  }
  return grown;
}

std::optional<Error> find_overdrawn_gpu(const placement::Node& machine, const Records& starts,
                                        const Owners& owners) {
  const auto is_there = [&](const std::string& uuid) {
    return std::ranges::find(machine.inventory.devices, uuid, &gpu::Device::uuid) !=
           machine.inventory.devices.end();
  };
  std::map<std::string, std::string> taken;  // by whom, of what is newly given
  for (const auto* record : starts)
    for (const auto& grant : record->gpus) {
      taken.emplace(grant.uuid, record->task.id);
      // Whoever joins a group gets what it has, also when that is gone.
      if (record->task.resources.group.empty() && !is_there(grant.uuid))
        return broken(
            fmt::format("task '{}' would get GPU {}, which is not there", record->task.id, grant.uuid));
    }
  if (taken.empty()) return std::nullopt;
  std::map<std::string, int> milli;
  std::set<std::string> groups;  // those who share a GPU on purpose count once
  for (const auto* record : owners()) {
    const auto group = request_of(record->task).group;
    for (const auto& grant : record->gpus)
      if (group.empty() || groups.insert(grant.uuid + "/" + group).second) milli[grant.uuid] += grant.milli;
  }
  for (const auto& [uuid, id] : taken)
    if (milli[uuid] > 1000)
      return broken(fmt::format("task '{}' would get GPU {}, of which {} thousandths would be given", id,
                                uuid, milli[uuid]));
  return std::nullopt;
}

bool is_within(const placement::Limits& limit, const placement::ResourceAmounts& used) {
  return used.gpu_milli <= limit.gpu_milli.value_or(used.gpu_milli) &&
         used.milli_cpus <= limit.milli_cpus.value_or(used.milli_cpus) &&
         used.memory_bytes <= limit.memory_bytes.value_or(used.memory_bytes);
}

/// Of those that are meant, when somebody who takes more than a part of a group's is among who starts.
template <typename Predicate>
bool passes(const placement::Cluster& cluster, const placement::Limits& limit, const Records& starts,
            const Owners& owners, Predicate is_meant) {
  if (std::ranges::none_of(starts, [&](const auto* record) {
        return record->task.resources.group.empty() && is_meant(record->task);
      }))
    return false;
  std::vector<const workload::Task*> meant;
  for (const auto* record : owners())
    if (is_meant(record->task)) meant.push_back(&record->task);
  return !is_within(limit, held_by(cluster, meant));
}

/// What those are held to who are given no more of anything else.
placement::Rules gpu_limits(placement::Rules rules) {
  for (auto& [subject, quota] : rules.quotas) quota.limit = {.gpu_milli = quota.limit.gpu_milli};
  for (auto& [path, queue] : rules.queues) queue.limit = {.gpu_milli = queue.limit.gpu_milli};
  return rules;
}

std::optional<Error> find_passed_limit(const State& state, const placement::Rules& rules,
                                       const Records& starts, const Owners& owners) {
  for (const auto& [subject, quota] : rules.quotas)
    if (passes(state.cluster, quota.limit, starts, owners,
               [&](const auto& task) { return is_of(task, subject); }))
      return broken(fmt::format("the quota of '{}' would be passed", subject.name));
  for (const auto& [path, queue] : rules.queues)
    if (passes(state.cluster, queue.limit, starts, owners,
               [&](const auto& task) { return is_in(task, path); }))
      return broken(fmt::format("the limit of the queue '{}' would be passed", path));
  return std::nullopt;
}

}  // namespace

std::optional<Error> broken_invariant(const State& state, const Outcome& outcome) {
  if (state.placed_by_others) return std::nullopt;  // whose books are theirs
  const auto starts = starts_of(state, outcome);
  const auto grown = grown_in(state, outcome);
  if (starts.empty() && grown.empty()) return std::nullopt;
  std::optional<Records> found_owners;
  const auto owners = [&]() -> const Records& {
    if (!found_owners) found_owners = owners_after(state, outcome);
    return *found_owners;
  };
  const auto& machine = outcome.node ? *outcome.node : state.machine();
  const auto& rules = outcome.rules ? *outcome.rules : state.rules;
  if (auto found = find_overdrawn_gpu(machine, starts, owners)) return found;
  if (auto found = find_overdrawn_gpu(machine, grown, owners)) return found;
  if (auto found = find_passed_limit(state, rules, starts, owners)) return found;
  return find_passed_limit(state, gpu_limits(rules), grown, owners);
}

}  // namespace drover::control

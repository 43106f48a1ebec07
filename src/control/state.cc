#include "control/state.h"

#include <algorithm>

namespace drover::control {
namespace {

/// Keeps the indices by state.
void index(State& state, const TaskRecord& record) {
  const auto& id = record.task.id;
  if (record.state == TaskState::kQueued)
    state.queue[record.sequence] = id;
  else
    state.queue.erase(record.sequence);
  if (owns_resources(record.state))
    state.active.insert(id);
  else
    state.active.erase(id);
  state.next_sequence = std::max(state.next_sequence, record.sequence + 1);
}


}  // namespace

void apply(State& state, const Outcome& outcome) {
  if (outcome.node) state.cluster.set_node(*outcome.node);
  if (outcome.rules) state.rules = *outcome.rules;
  if (outcome.standing) state.standing = *outcome.standing;
  std::map<std::string, const workload::Task*> jobs;
  for (const auto& record : outcome.changed) {
    if (moved(state.find(record.task.id), record)) jobs.emplace(job_id(record.task), &record.task);
    state.tasks[record.task.id] = record;
    index(state, record);
  }
  settle(state.cluster, state.node, jobs, state.finder());
  for (const auto& id : outcome.removed) state.tasks.erase(id);
}

State restore(std::vector<TaskRecord> records, placement::Rules rules, placement::Node node,
              placement::NodePolicy policy) {
  State state;
  state.node = node.name;
  state.cluster = placement::Cluster(policy);
  Outcome outcome;
  outcome.changed = std::move(records);
  outcome.rules = std::move(rules);
  outcome.node = std::move(node);
  apply(state, outcome);
  return state;
}

}  // namespace drover::control

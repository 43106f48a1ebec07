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

bool same_resources(const TaskRecord& a, const TaskRecord& b) {
  if (owns_resources(a.state) != owns_resources(b.state)) return false;
  return !owns_resources(a.state) || (a.gpus == b.gpus && a.cpus == b.cpus && a.nics == b.nics);
}

/// Takes the record in; whether something was taken or came free by it. A task that is put back may start
/// again at once, elsewhere.
bool put(State& state, const TaskRecord& record) {
  auto& stored = state.tasks[record.task.id];
  const bool moved = !same_resources(stored, record);
  stored = record;
  index(state, record);
  return moved;
}

}  // namespace

void apply(State& state, const Outcome& outcome) {
  if (outcome.node) state.cluster.set_node(*outcome.node);
  if (outcome.rules) state.rules = *outcome.rules;
  if (outcome.standing) state.standing = *outcome.standing;
  std::map<std::string, const workload::Task*> moved;  // by job
  for (const auto& record : outcome.changed)
    if (put(state, record)) moved.emplace(job_id(record.task), &record.task);
  // Nobody is put where somebody has just left before that one is gone.
  for (const auto& [job, task] : moved) release(state.cluster, *task);
  for (const auto& [job, task] : moved) settle(state.cluster, state.node, *task, state.finder());
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

#pragma once

// A machine with tasks, for tests of the state machine: what is decided is applied at once.

#include <string>
#include <utility>
#include <vector>

#include "control/controller.h"

namespace drover::control::testing {

inline const TimePoint kNow = TimePoint(std::chrono::milliseconds(1'700'000'000'000));

/// GPUs "GPU-0" … of 16 GiB.
inline placement::Node node_with(int gpus, std::int64_t milli_cpus = 64'000) {
  placement::Node node{.name = "here"};
  for (int i = 0; i < gpus; ++i) {
    gpu::Device device;
    device.uuid = "GPU-" + std::to_string(i);
    device.index = i;
    device.memory_bytes = 16ULL << 30;
    node.inventory.devices.push_back(device);
  }
  const auto count = static_cast<std::size_t>(gpus);
  node.inventory.links.assign(count, std::vector<gpu::Link>(count));
  node.milli_cpus = milli_cpus;
  node.memory_bytes = 1ULL << 40;
  return node;
}

/// Root's.
inline workload::Task task(const std::string& id, int gpus) {
  workload::Task result;
  result.id = id;
  result.name = id;
  result.command = {"true"};
  result.owner_name = "root";
  if (gpus > 0) result.resources.gpus = {{gpus, {}}};
  return result;
}

inline workload::Task task_of(const std::string& user, uid_t uid, const std::string& id, int gpus) {
  auto result = task(id, gpus);
  result.owner = uid;
  result.owner_name = user;
  return result;
}

inline workload::Task urgent(workload::Task task, int priority) {
  task.priority = priority;
  return task;
}

/// Members "<id>-0" … with so many GPUs each.
inline std::vector<workload::Task> gang(const std::string& id, int size, int gpus, int priority = 0) {
  std::vector<workload::Task> tasks;
  for (int rank = 0; rank < size; ++rank) {
    tasks.push_back(urgent(task(member_id(id, rank), gpus), priority));
    tasks.back().gang = workload::GangMembership{id, rank, size, workload::Arrangement::kPack};
  }
  return tasks;
}

inline workload::Ending exited(int status, bool stopped = false) {
  workload::Ending ending;
  ending.exit_status = status;
  ending.stopped = stopped;
  ending.finished_at = kNow;
  return ending;
}

struct Machine {
  State state;
  std::vector<Action> actions;  ///< those that were asked for last

  explicit Machine(int gpus) : state(restore({}, node_with(gpus))) {}

  Status on(const Event& event, Moment now = kNow) {
    auto outcome = decide(state, event, now);
    if (!outcome) return Failure(outcome.error());
    actions = outcome->actions;
    apply(state, *outcome);
    return {};
  }
  Status submit(workload::Task task) { return on(event::Submitted{{std::move(task)}}); }
  Status submit(std::vector<workload::Task> gang) { return on(event::Submitted{std::move(gang)}); }
  Status set(placement::Rules rules) { return on(event::RulesChanged{std::move(rules)}); }

  const TaskRecord& record(const std::string& id) const { return state.tasks.at(id); }
  TaskState at(const std::string& id) const { return record(id).state; }
  std::vector<std::string> reasons(const std::string& id) const { return waiting_reasons(state, record(id)); }
  template <typename T>
  std::vector<std::string> asked() const {
    std::vector<std::string> ids;
    for (const auto& action : actions)
      if (const auto* specific = std::get_if<T>(&action)) ids.push_back(specific->id);
    return ids;
  }
  /// As after kill -9: nothing but the journal is left.
  void restart() {
    Journaled journaled;
    static_cast<Tables<Rows>&>(journaled) = state;
    for (const auto& [id, record] : state.tasks) journaled.records.push_back(record);
    journaled.rules = state.rules;
    journaled.next_sequence = state.next_sequence;
    state = restore(std::move(journaled), state.machine());
  }
};

}  // namespace drover::control::testing

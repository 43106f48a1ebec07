#pragma once

// Which processes tasks have, as far as their containers have told. Owned by the control strand.

#include <map>
#include <string>
#include <vector>

#include "control/state.h"
#include "engine/ports.h"

namespace drover::engine {

class Processes {
 public:
  explicit Processes(const control::State& state) : state_(state) {}

  void started(const std::string& id, pid_t first) { first_[id] = first; }
  void ended(const std::string& id) { first_.erase(id); }

  TaskProcesses of(const control::TaskRecord& record) const {
    TaskProcesses task{record.task.id};
    if (const auto first = first_.find(task.id); first != first_.end()) task.first = first->second;
    for (const auto& grant : record.gpus) task.gpus.insert(grant.uuid);
    return task;
  }
  /// Of every task that owns resources.
  std::vector<TaskProcesses> of_tasks() const {
    std::vector<TaskProcesses> tasks;
    for (const auto& id : state_.active) tasks.push_back(of(state_.tasks.at(id)));
    return tasks;
  }

 private:
  const control::State& state_;
  std::map<std::string, pid_t> first_;
};

}  // namespace drover::engine

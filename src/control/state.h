#pragma once

// What the daemon knows: the tasks, the rules of sharing, the machine, and what of it is taken. A value. What
// is taken is computed from the records (decision 2), so no crash can make the two disagree.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "control/jobs.h"
#include "control/record.h"
#include "placement/schedule.h"

namespace drover::control {

namespace action {
struct Launch {
  std::string id;
};
struct Stop {
  std::string id;
  bool force = false;
};
/// The task has ended, or waits again: what it left outside its sandbox can go.
struct Clean {
  std::string id;
};
/// The task is forgotten: its sandbox can go.
struct Forget {
  std::string id;
};
}  // namespace action

using Action = std::variant<action::Launch, action::Stop, action::Clean, action::Forget>;

/// What the last plan said of those who wait. By job: a task, or a gang.
struct Standing {
  std::map<std::string, placement::Reasons> reasons;
  std::vector<std::string> order;  ///< the jobs as they stand in the queue

  bool operator==(const Standing&) const = default;
};

struct State {
  std::string node;  ///< name of this machine, in `cluster`
  placement::Cluster cluster;
  placement::Rules rules;
  std::map<std::string, TaskRecord> tasks;  ///< by id
  std::uint64_t next_sequence = 1;

  // Kept by apply():
  std::map<std::uint64_t, std::string> queue;  ///< ids of tasks that wait, by order of acceptance
  std::set<std::string> active;                ///< ids of tasks that own resources
  std::optional<Standing> standing;            ///< absent until the first plan

  const placement::Node& machine() const { return *cluster.node(node); }
  /// Null when there is no such task.
  const TaskRecord* find(const std::string& id) const {
    const auto found = tasks.find(id);
    return found == tasks.end() ? nullptr : &found->second;
  }
  Find finder() const {
    return [this](const std::string& id) { return find(id); };
  }
};

/// What becomes of an event.
struct Outcome {
  std::vector<TaskRecord> changed;
  std::vector<std::string> removed;
  std::vector<Action> actions;
  std::optional<placement::Node> node;
  std::optional<placement::Rules> rules;
  std::optional<Standing> standing;
};

/// Makes the outcome the state. Only after the journal has it.
void apply(State& state, const Outcome& outcome);

/// State as the journal left it: `records` in any order.
State restore(std::vector<TaskRecord> records, placement::Rules rules, placement::Node node,
              placement::NodePolicy policy = placement::NodePolicy::kPack);

}  // namespace drover::control

#pragma once

// What the daemon knows: the tasks, the rules of sharing, the machine, and what of it is taken. What is taken
// is computed from the records, so no crash can make the two disagree.
//
// A value, of which a copy takes microseconds, however many tasks there are: copies share what did not change
// (base/shared_map.h). So who has much to read takes a copy, and reads it wherever he likes. What was found
// in a state, by pointer or reference, is only valid until that state changes.

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/cow.h"
#include "base/shared_map.h"
#include "base/user_limits.h"
#include "control/allocation.h"
#include "control/definitions.h"
#include "control/gpu_share.h"
#include "control/health.h"
#include "control/image_fit.h"
#include "control/jobs.h"
#include "control/notice.h"
#include "control/record.h"
#include "control/table.h"
#include "control/usage.h"
#include "placement/run_times.h"
#include "placement/schedule.h"
#include "workload/node_rule.h"

namespace drover::control {

namespace action {
struct Launch {
  std::string id;
  std::vector<workload::NodeRule> node_rules = {};  ///< where others place it
};
struct Stop {
  std::string id;
  bool force = false;
};
/// What holds the task to its share is to hold it to the one that it has now.
struct Resize {
  std::string id;
};
/// The task has ended, or waits again: what it left outside its sandbox can go.
struct Clean {
  std::string id;
};
/// The task is forgotten: its sandbox can go.
struct Forget {
  std::string id;
  uid_t owner = 0;  ///< of the task that was
};
}  // namespace action

using Action = std::variant<action::Launch, action::Stop, action::Resize, action::Clean, action::Forget>;

/// A task that waits, as far as its place among others is concerned.
struct Queued {
  std::string id;
  std::string job;  ///< job_id()
  uid_t owner = 0;
  std::string queue;
  int priority = 0;
  bool gpus = false;  ///< whether it wants any
  int rank = 0;       ///< in its gang
  bool held = false;  ///< is_held()
  std::string array;  ///< id of its array, where only some of that may run at once; else ""
  int at_once = 0;    ///< how many

  bool operator==(const Queued&) const = default;
};

/// Of the jobs of one user in one queue so many are planned, with GPUs and without; more would take a time
/// that all others wait for. They stand for those behind them.
inline constexpr std::size_t kPlannedOfUser = 500;

/// What the last plan said of those who wait. By job: a task, or a gang.
struct QueuePositions {
  std::map<std::string, placement::Reasons> reasons;  ///< of those that were planned
  std::vector<std::string> order;                     ///< the jobs as they stand in the queue
  /// Sequences of the first tasks of jobs that were not planned (kPlannedOfUser), ascending.
  std::vector<std::uint64_t> behind;

  bool operator==(const QueuePositions&) const = default;
};

/// What is known about who asked for a task: what it was made for, and the name of that.
using OriginName = std::pair<workload::OriginKind, std::string>;
inline OriginName origin_of(const workload::Task& task) {
  return {task.origin.kind, task.origin.name};
}

using ByTime = SharedSet<std::pair<TimePoint, std::string>>;

/// Ended tasks and their sandboxes are kept so long, then forgotten (Mesos' gc_delay), where nobody says
/// otherwise; so are the records of frameworks that were removed.
inline constexpr std::chrono::hours kKeepEnded{7 * 24};

/// Of more images nothing is known, and their tasks are checked when they start alone.
inline constexpr std::size_t kMostImages = 4096;

struct State : Tables<Rows> {
  std::string node;  ///< name of this machine, in `cluster`
  /// By the scheduler of a cluster: who waits is handed to it, and nothing is planned here.
  bool placed_by_others = false;
  /// A UUID that is kept as long as the journal: by it those know the machine who come from Mesos.
  std::string journal_id;
  placement::Cluster cluster;
  placement::Rules rules;
  bool privileged_allowed = false;     ///< what the administrator said when he started the daemon
  UserLimits limits;                   ///< the same
  ExecutorTimeouts executor_timeouts;  ///< the same
  GpuShare gpu_share;                  ///< the same
  std::chrono::milliseconds keep_ended = kKeepEnded;  ///< the same: tasks, with their sandboxes
  Rows<TaskRecord> tasks;                             ///< by id
  std::uint64_t next_sequence = 1;
  /// Ids of tasks that were removed, as restore() found them: see Journaled.
  SharedSet<std::string> forgotten;
  std::vector<Error> unread;               ///< entries of the journal that cannot be read, and stay there
  std::set<std::string> unread_templates;  ///< keys of templates that such entries name: they stay too

  // Kept by apply():
  SharedMap<std::uint64_t, Queued> queue;                   ///< tasks that wait, by order of acceptance
  SharedSet<std::string> active;                            ///< ids of tasks that own resources
  Cow<QueuePositions> positions;                            ///< null until the first plan
  SharedMap<OriginName, SharedSet<std::string>> by_origin;  ///< ids of tasks that nobody submitted himself
  SharedMap<std::string, SharedSet<std::string>> by_array;  ///< ids of tasks, by that of their array
  SharedMap<std::string, SharedSet<std::string>> awaited;   ///< ids of tasks that wait, by what they await
  placement::RunTimes run_times;                            ///< of the tasks that have ended
  ByTime begins;                                            ///< ids of tasks that wait, by not_before
  ByTime retries;                                           ///< the same, by retry_at
  SharedMap<std::string, TaskHealth> health;                ///< by task; of those that are checked
  SharedMap<std::string, std::string> said;                 ///< by task: event::Waits
  ImageFits images;                                         ///< at most kMostImages
  ByTime ended;                                             ///< ids of tasks, by steady_end()
  Usages usages;
  Definitions definitions;
  SharedMap<std::string, std::size_t> template_uses;  ///< by key: how many of `tasks` have it
  ByTime schedules_due;                               ///< names of schedules, by next_time()

  const placement::Node& machine() const { return *cluster.node(node); }
  /// Where the task is, or would be.
  const placement::Node& machine_of(const TaskRecord& record) const {
    const auto* found = record.node.empty() ? nullptr : cluster.node(record.node);
    return found == nullptr ? machine() : *found;
  }
  /// Null when there is no such task.
  const TaskRecord* find(const std::string& id) const {
    const auto found = tasks.find(id);
    return found == tasks.end() ? nullptr : &found->second;
  }
  Find finder() const {
    return [this](const std::string& id) { return find(id); };
  }
  /// What an id that people know means: a task, the members of a gang, or the tasks of an array that there
  /// still are, as `find` has them. None when there is no such.
  std::vector<const TaskRecord*> tasks_under(const std::string& id, const Find& find) const;
  std::vector<const TaskRecord*> tasks_under(const std::string& id) const {
    return tasks_under(id, finder());
  }
  /// The ids of a map of ids, none when it has none of that key.
  static const SharedSet<std::string>& ids_in(const SharedMap<std::string, SharedSet<std::string>>& map,
                                              const std::string& key);
};

/// What an event made, where that has a name.
struct Made {
  std::string id;       ///< of a deployment, a framework, an executor's task; "" when none
  TimePoint version{};  ///< of a deployment's definitions
};

/// What becomes of an event.
struct Outcome : Tables<Changes> {
  std::vector<TaskRecord> changed;
  std::vector<std::string> removed;
  bool added = false;  ///< whether a task among `changed` is new
  std::vector<Action> actions;
  std::optional<placement::Node> node;
  std::shared_ptr<const std::vector<placement::Node>> nodes;  ///< all others; null: as before
  std::optional<placement::Rules> rules;
  std::optional<QueuePositions> positions;
  std::map<std::string, TaskHealth> health;             ///< new findings; not journaled
  std::map<std::string, std::string> said;              ///< event::Waits; not journaled
  std::map<ImageName, std::optional<ImageFit>> images;  ///< none: it is forgotten; not journaled
  /// By key: a task with a template that is to be kept, or none when nobody needs it any more.
  std::map<std::string, std::optional<workload::Task>> templates;
  std::optional<Error> broken;  ///< what the plan would have broken (invariants.h): nothing of it is done
  Made made;
  std::vector<Notice> notices;          ///< in the order of what happened
  std::vector<Allocation> allocations;  ///< that ended
};

Queued queued(const TaskRecord& record);

/// What the job that the task stands for is like, for what is expected of its like.
placement::RunTimes::Kind kind_of(const workload::Task& task);

/// Makes the outcome the state. Only after the journal has it.
void apply(State& state, const Outcome& outcome);

/// What the journal holds.
struct Journaled : Tables<Rows> {
  std::vector<TaskRecord> records;  ///< in any order
  /// Ids of tasks that were removed, whose folders may still be there. A folder of a task that is neither
  /// here nor among the records is one that the journal lost.
  SharedSet<std::string> forgotten;
  placement::Rules rules;
  std::uint64_t next_sequence = 1;
  std::vector<Error> unread;               ///< of entries that cannot be read, by which they are
  std::set<std::string> unread_templates;  ///< keys of templates that such entries name
};

/// The state as the journal left it.
State restore(Journaled journaled, placement::Node node,
              placement::NodePolicy policy = placement::NodePolicy::kPack);

}  // namespace drover::control

#pragma once

// A state with changes laid over it: what decide() works on. The state outlives it. Used once.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/moment.h"
#include "control/state.h"

namespace drover::control {

class Draft : public Tables<Overlay> {
 public:
  Draft(const State& state, Moment now);

  const State& base() const { return state_; }
  TimePoint now() const { return now_.wall; }
  /// For durations.
  TimePoint steady() const { return now_.steady; }
  const placement::Node& machine() const { return outcome_.node ? *outcome_.node : state_.machine(); }
  const placement::Rules& rules() const { return outcome_.rules ? *outcome_.rules : state_.rules; }

  bool privileged_allowed() const { return state_.privileged_allowed; }
  const UserLimits& limits() const { return state_.limits; }
  const ExecutorTimeouts& executor_timeouts() const { return state_.executor_timeouts; }
  /// With the tasks that were added.
  const Usages& usages() const { return added_usages_ ? *added_usages_ : state_.usages; }
  Usage usage(uid_t owner) const;

  const TaskRecord* find(const std::string& id) const;
  Find finder() const {
    return [this](const std::string& id) { return find(id); };
  }
  /// The task is there.
  TaskRecord& change(const std::string& id);
  /// A new one; it gets the next number in the order of acceptance.
  void add(TaskRecord record);
  workload::DefinitionSizes& sizes() { return sizes_; }
  void remove(const std::string& id);
  /// Of a new task: no other has it or has had it, as far as anybody remembers.
  std::string unused_id();

  /// The tasks of an origin, in the order of their acceptance.
  std::vector<const TaskRecord*> tasks_of(const OriginName& origin) const;
  /// State::tasks_under().
  std::vector<const TaskRecord*> tasks_under(const std::string& id) const {
    return state_.tasks_under(id, finder());
  }
  /// Tasks that were added or changed, and not removed.
  std::vector<const TaskRecord*> changed() const;
  /// Origins of which tasks were added or changed, or have other health.
  std::set<OriginName> touched() const;

  /// Tasks that came to their end by this event, by id.
  std::vector<const TaskRecord*> just_ended() const;

  const TaskHealth* health(const std::string& id) const;
  void set_health(const std::string& id, TaskHealth health) { outcome_.health[id] = std::move(health); }
  void say(const std::string& id, std::string why) { outcome_.said[id] = std::move(why); }
  void made(std::string id, TimePoint version = {}) { outcome_.made = {std::move(id), version}; }
  /// The task was started, and is not any more: so this attempt ended. It may wait again.
  void attempt_over(const std::string& id, AttemptEnd how) { attempts_over_.insert_or_assign(id, how); }
  /// After what has become of tasks until now.
  void notify(Notice notice);
  void act(Action action) { outcome_.actions.push_back(std::move(action)); }
  void set_node(placement::Node node) { outcome_.node = std::move(node); }
  void set_nodes(std::shared_ptr<const std::vector<placement::Node>> nodes) {
    outcome_.nodes = std::move(nodes);
  }
  /// Those that this event brings; null when it brings none.
  const std::vector<placement::Node>* new_nodes() const { return outcome_.nodes.get(); }
  void set_rules(placement::Rules rules) { outcome_.rules = std::move(rules); }
  void set_images(const std::map<ImageName, std::optional<ImageFit>>& images);
  const ImageFits& images() const { return images_ ? *images_ : state_.images; }
  void set_positions(QueuePositions positions) { outcome_.positions = std::move(positions); }

  /// Tasks that own resources.
  std::vector<const TaskRecord*> active() const;

  /// How long the job that the task stands for is thought to run.
  std::optional<std::chrono::milliseconds> expected(const workload::Task& task) const {
    return state_.run_times.empty() ? std::nullopt : state_.run_times.expected(kind_of(task));
  }

  /// Of members that wait: with what their images need, and what is expected of them.
  placement::Job job_of_waiting(const std::vector<const TaskRecord*>& members) const;

  // The whole as the draft has it, in no order.
  struct Waiting {
    std::vector<placement::Job> jobs;
    /// Those that are not planned (kPlannedOfUser), by order of acceptance: what their first task has of it.
    std::vector<std::pair<std::uint64_t, std::string>> behind;
    /// Those that are held back (is_held()), or by the limit of their array, by order of acceptance.
    std::vector<std::string> held;
  };
  Waiting waiting() const;
  std::vector<placement::RunningJob> running() const;
  placement::Cluster cluster() const;

  /// Whether anything changed that may let a task start, or changes why one waits.
  bool plan_is_due() const;

  Outcome finish() &&;

 private:
  const State& state_;
  Moment now_;
  std::uint64_t added_ = 0;
  std::optional<Usages> added_usages_;
  Templates added_templates_;
  workload::Task keyed_;  ///< that was added last: its template has the key
  std::string key_;
  workload::DefinitionSizes sizes_;
  /// Tells of every task that came to another state since it was told of last.
  void notify_moves();
  /// What tasks had and have no more.
  void settle_allocations();
  /// Which templates are needed from now on, and which no longer.
  void settle_templates();

  std::map<std::string, TaskRecord> changed_;
  std::vector<std::string> order_;             ///< keys of changed_, in the order in which they came there
  std::map<std::string, TaskState> notified_;  ///< states of tasks that notices were made of
  std::map<std::string, AttemptEnd> attempts_over_;
  std::set<std::string> removed_;
  std::optional<ImageFits> images_;  ///< when they are not those of the state any more
  Outcome outcome_;
};

/// When the task started, if the system's clock had never been set since.
std::optional<TimePoint> started_by_wall(const Draft& draft, const TaskRecord& record);

}  // namespace drover::control

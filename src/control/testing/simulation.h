#pragma once

// The whole control plane in simulated time: the state machine, a journal, an engine that misbehaves, people
// who change their minds, GPUs that fail, and a daemon that is killed between any two steps. All of it
// follows from one seed.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "control/journal.h"
#include "control/services.h"
#include "control/testing/journal.h"
#include "control/testing/services.h"
#include "control/testing/simulated_engine.h"
#include "control/testing/simulated_framework.h"
#include "control/testing/simulated_schedules.h"
#include "control/testing/world.h"

namespace drover::control::testing {

class Simulation final : private World {
 public:
  explicit Simulation(std::uint64_t seed, TimePoint begin = kNow)
      : random_(seed),
        now_(begin),
        engine_(
            random_, [this](auto delay, auto what) { later(delay, std::move(what)); },
            [this](const Event& event) { process(event); }, [this] { return now_; }),
        schedules_(*this) {
    for (int i = 0; i < kFrameworks; ++i)
      frameworks_.push_back(std::make_unique<SimulatedFramework>(static_cast<World&>(*this), i));
    start();
    disturb();
    check_health();
  }

  /// Lets time pass until then; false as soon as something is wrong, which `wrong` says.
  bool run_until(TimePoint end) {
    while (!agenda_.empty() && agenda_.begin()->first <= end && wrong.empty()) {
      auto next = agenda_.extract(agenda_.begin());
      now_ = next.key();
      next.mapped()();
    }
    now_ = end;
    return wrong.empty();
  }
  /// No more trouble and no more wishes: in the end all is as it was asked for.
  bool settle() {
    calm_ = true;
    engine_.faults = {0, 0, 0, 0, false};
    if (!state_) start();
    process(event::NodeChanged{node_with(kGpus)});
    if (!run_until(now_ + std::chrono::hours(48))) return false;
    schedules_.disable_all();
    if (!run_until(now_ + std::chrono::hours(24))) return false;
    check_settled();
    return wrong.empty();
  }

  TimePoint now() const override { return now_; }
  std::string wrong;  ///< what is; "" as long as nothing is
  std::int64_t steps = 0, crashes = 0, deployments = 0, preemptions = 0;
  std::int64_t starts() const { return engine_.starts; }
  const ScheduleModel& schedules() const { return schedules_.model(); }
  std::int64_t updates() const {
    std::int64_t sum = 0;
    for (const auto& framework : frameworks_) sum += framework->told;
    return sum;
  }
  /// Of tasks of frameworks, as those were told.
  std::int64_t evictions() const {
    std::int64_t sum = 0;
    for (const auto& framework : frameworks_) sum += framework->preempted;
    return sum;
  }

 private:
  static constexpr int kGpus = 8;
  static constexpr int kServices = 5;
  static constexpr int kFrameworks = 2;

  const State* state() const override { return state_.get(); }
  TimePoint up_since() const override { return up_since_; }
  void later(std::chrono::milliseconds delay, std::function<void()> what) override {
    agenda_.emplace(now_ + delay, std::move(what));
  }
  std::int64_t any(std::int64_t least, std::int64_t most) override { return pick(random_, least, most); }
  bool happens(int in_thousand) override { return !calm_ && chance(random_, in_thousand); }
  bool calm() const override { return calm_; }
  void expect(bool holds, const std::function<std::string()>& what) override {
    if (!holds && wrong.empty()) wrong = fmt::format("{} at {}", what(), format_time(now_));
  }

  // The daemon

  bool process(const Event& event) override {
    if (!state_ || !wrong.empty()) return false;
    ++steps;
    auto outcome = decide(*state_, event, now_);
    if (!outcome) return false;
    if (happens(1)) return crash();
    remember(*outcome);
    schedules_.observe(event, *outcome);
    for (const auto& framework : frameworks_) framework->observe(event);
    check_removed(*outcome);
    check_gangs(*outcome);
    apply(*state_, *outcome);
    for (const auto& notice : outcome->notices) {
      if (std::holds_alternative<notice::DeploymentEnded>(notice)) ++deployments;
      const auto* moved = std::get_if<notice::TaskMoved>(&notice);
      if (moved != nullptr && moved->record.state == TaskState::kQueued && moved->record.preemptions > 0)
        ++preemptions;
      for (const auto& framework : frameworks_) framework->on_notice(notice);
    }
    for (const auto& action : outcome->actions) {
      if (happens(1)) return crash();
      std::visit([&](const auto& specific) { perform(specific); }, action);
    }
    check_step();
    wake();
    return true;
  }

  /// What is to be in the journal. To write every step down as text would take most of the time of a life, so
  /// only what the daemon finds after a crash is.
  void remember(const Outcome& outcome) {
    for (const auto& record : outcome.changed) changed_[record.task.id] = record;
    unwritten_.removed.insert(unwritten_.removed.end(), outcome.removed.begin(), outcome.removed.end());
    unwritten_.added |= outcome.added;
    if (outcome.rules) unwritten_.rules = outcome.rules;
    for (const auto& [key, task] : outcome.templates) unwritten_.templates.insert_or_assign(key, task);
    each_table(
        [](const char*, auto& all, const auto& changes) {
          for (const auto& [id, record] : changes) all.insert_or_assign(id, record);
        },
        static_cast<Tables<Changes>&>(unwritten_), static_cast<const Tables<Changes>&>(outcome));
  }
  void write_journal() {
    for (auto& [id, record] : changed_) unwritten_.changed.push_back(std::move(record));
    const auto changes = changes_of(unwritten_);
    for (const auto& [key, text] : changes.put) journal_[key] = text;
    for (const auto& key : changes.removed) journal_.erase(key);
    changed_.clear();
    unwritten_ = {};
  }

  void perform(const action::Launch& launch) { engine_.launch(state_->tasks.at(launch.id)); }
  void perform(const action::Stop& stop) { engine_.stop(stop.id, stop.force); }
  void perform(const action::Resize&) {}
  void perform(const action::Clean&) {}
  void perform(const action::Forget& forget) { engine_.forget(forget.id); }

  void wake() {
    const auto next = next_deadline(*state_);
    if (!next || (wakes_at_ && *wakes_at_ <= *next && *wakes_at_ > now_)) return;
    wakes_at_ = std::max(*next, now_ + std::chrono::milliseconds(1));
    later(*wakes_at_ - now_, [this, at = *wakes_at_] {
      if (wakes_at_ != at) return;
      wakes_at_.reset();
      process(event::Tick{});
    });
  }

  bool crash() {
    ++crashes;
    state_.reset();
    wakes_at_.reset();
    for (const auto& framework : frameworks_) framework->lose_connection();
    later(std::chrono::milliseconds(any(100, 600'000)), [this] {
      if (!state_) start();
    });
    return false;
  }

  void start() {
    write_journal();
    auto journaled = decode_journal(journal_);
    if (!journaled) {
      wrong = to_string(journaled.error());
      return;
    }
    state_ = std::make_unique<State>(restore(std::move(*journaled), machine_));
    up_since_ = now_;
    engine_.forget_others([this](const auto& id) { return state_->tasks.contains(id); });
    std::vector<Event> found;
    for (const auto& [id, record] : state_->frameworks)
      if (!record.removed_at)
        found.push_back(event::FrameworkDisconnected{id, SimulatedFramework::kPatienceAfterRestart});
    for (const auto& id : state_->active)
      for (auto& event : engine_.recover(state_->tasks.at(id))) found.push_back(std::move(event));
    for (const auto& event : found) process(event);
    process(event::Tick{});
  }

  // The world

  void disturb() {
    if (calm_) return;
    later(std::chrono::milliseconds(any(1'000, 2'400'000)), [this] { disturb(); });
    switch (any(0, 9)) {
      case 0:
        return break_gpu();
      case 1:
      case 2:
      case 3:
        return submit();
      case 4:
        return stop_something();
      case 5:
        return kill_instances();
      case 6:
        return cancel_deployment();
      default:
        return change_service();
    }
  }

  void break_gpu() {
    machine_ = node_with(kGpus);
    for (auto& device : machine_.inventory.devices)
      if (happens(100)) device.unhealthy = "XID 79: it has fallen off the bus";
    process(event::NodeChanged{machine_});
  }

  void submit() {
    const auto id = fmt::format("person-{}", ++submitted_);
    const auto priority = static_cast<int>(any(0, 2)) * 10;
    if (happens(200))
      process(event::Submitted{gang(id, static_cast<int>(any(2, 4)), 1, priority)});
    else
      process(event::Submitted{{urgent(task(id, static_cast<int>(any(0, 3))), priority)}});
  }

  void stop_something() {
    if (!state_ || state_->active.empty()) return;
    auto chosen = state_->active.begin();
    std::advance(chosen, any(0, static_cast<std::int64_t>(state_->active.size()) - 1));
    process(event::StopRequested{*chosen, happens(300)});
  }

  /// So small that even while new versions take over there is room for all.
  workload::Service wanted_service() {
    const auto number = any(0, kServices - 1);
    auto wanted = service(fmt::format("/group-{}/s{}", number % 2, number), static_cast<int>(any(0, 2)),
                          number < 2 ? 1 : 0);
    wanted.task.environment.edit()["VERSION"] = std::to_string(any(1, 3));
    wanted.task.priority = 5;
    wanted.minimum_health = static_cast<double>(any(0, 2)) / 2;
    wanted.maximum_over_capacity = static_cast<double>(any(0, 2)) / 2;
    wanted.oldest_first = happens(500);
    if (number % 2 == 1) wanted.health_checks = {{.grace_period = std::chrono::minutes(10)}};
    if (number == 3) wanted.dependencies = {"/group-0/s0"};
    if (number == 4) wanted.task.network.ports = {{}, {.host_port = 9000}};
    if (number == 4) wanted.constraints = {{"hostname", workload::ConstraintKind::kMaxPer, "1"}};
    // Two of them exclude each other: a new one cannot come before the old one has gone.
    if (number == 4) wanted.minimum_health = 0, wanted.instances = std::min(wanted.instances, 1);
    return wanted;
  }

  void change_service() {
    const auto wanted = wanted_service();
    event::ServicesChanged change{.force = happens(500)};
    if (happens(100) && state_ && state_->services.contains(wanted.id))
      change.removed = {wanted.id};
    else
      change.put = {wanted};
    if (const auto other = wanted_service(); other.id != wanted.id && happens(300))
      change.put.push_back(other);
    change.restart = happens(100);
    process(change);
  }

  void kill_instances() {
    if (!state_) return;
    event::InstancesKilled kill{.scale = happens(500), .force = happens(500)};
    for (const auto& id : state_->active)
      if (state_->tasks.at(id).task.origin.kind == workload::OriginKind::kService && happens(300))
        kill.ids.push_back(id);
    if (!kill.ids.empty()) process(kill);
  }

  void cancel_deployment() {
    if (!state_ || state_->deployments.empty()) return;
    process(event::DeploymentCancelled{state_->deployments.begin()->first, true});
  }

  void check_health() {
    later(std::chrono::minutes(15), [this] { check_health(); });
    if (!state_) return;
    std::vector<std::string> checked;
    for (const auto& id : state_->active) {
      const auto& origin = state_->tasks.at(id).task.origin;
      const auto found = state_->services.find(origin.name);
      if (found != state_->services.end() && !found->second.target.health_checks.empty())
        checked.push_back(id);
    }
    for (const auto& id : checked)
      process(event::Checked{{.task = id, .passed = !happens(150), .why = "refused", .at = now_}});
  }

  // What holds of every state

  void check_removed(const Outcome& outcome) {
    for (const auto& id : outcome.removed)
      expect(is_final(state_->tasks.at(id).state), [&] { return fmt::format("task '{}' was lost", id); });
  }

  void check_gangs(const Outcome& outcome) {
    std::map<std::string, int> launched, sizes;
    for (const auto& record : outcome.changed) {
      if (!record.task.gang || record.state != TaskState::kStarting) continue;
      const auto* before = state_->find(record.task.id);
      sizes[record.task.gang->id] = record.task.gang->size;
      if (before == nullptr || before->state != TaskState::kStarting) ++launched[record.task.gang->id];
    }
    for (const auto& [id, count] : launched)
      expect(count == sizes[id], [&] { return fmt::format("part of the gang '{}' was started", id); });
  }

  void check_step() {
    std::set<std::string> gpus;
    std::set<int> ports;
    for (const auto& id : state_->active) {
      const auto& record = state_->tasks.at(id);
      for (const auto& grant : record.gpus)
        expect(gpus.insert(grant.uuid).second, [&] { return grant.uuid + " was given twice"; });
      for (const int port : record.ports)
        expect(ports.insert(port).second, [&] { return fmt::format("port {} was given twice", port); });
      // News of its start may be late.
      if (record.state == TaskState::kRunning && record.task.timeout)
        expect(std::max(*record.started_at, up_since_) + *record.task.timeout + 10s > now_,
               [&] { return fmt::format("'{}' runs though its time is up", id); });
    }
    for (const auto& id : engine_.running())
      expect(state_->active.contains(id), [&] { return fmt::format("'{}' runs and owns nothing", id); });
    const Draft draft(*state_, now_);
    for (const auto& [id, record] : state_->services) {
      const auto instances = instances_of(draft, record);
      expect(static_cast<int>(instances.current.size()) <= std::max(record.applied.instances, 0),
             [&] { return fmt::format("'{}' has too many instances", id); });
      const bool on_its_way = std::ranges::any_of(
          state_->deployments, [&](const auto& deployment) { return deployment.second.touches(id); });
      const auto& [applied, target] = std::tie(record.applied, record.target);
      const bool as_wanted =
          record.removed ? applied.instances == 0
                         : applied.instances == target.instances && same_configuration(applied, target);
      expect(on_its_way || as_wanted, [&] { return fmt::format("'{}' was left on its way", id); });
    }
    schedules_.check(*state_);
    for (const auto& framework : frameworks_) framework->check(*state_);
  }

  void check_settled() {
    expect(state_->deployments.empty(), [] { return "a deployment does not end"; });
    for (const auto& [id, record] : state_->services) {
      expect(!record.removed, [&] { return fmt::format("'{}' does not go", id); });
      const auto instances = instances_of(Draft(*state_, now_), record);
      expect(instances.old.empty() && instances.stopping.empty(),
             [&] { return fmt::format("'{}' has old instances", id); });
      const auto up = std::ranges::count(instances.current, TaskState::kRunning,
                                         [](const auto* task) { return task->state; });
      expect(up == record.target.instances,
             [&] { return fmt::format("'{}' has {} of {} instances", id, up, record.target.instances); });
    }
    schedules_.check_settled(*state_);
    for (const auto& framework : frameworks_) framework->check_settled(*state_);
    if (!wrong.empty()) wrong += describe();
    std::set<std::string> running;
    for (const auto& id : engine_.running()) running.insert(id);
    expect(std::ranges::equal(running, state_->active), [] { return "records and containers differ"; });
    expect(state_->queue.empty(), [] { return "somebody waits though there is room"; });
  }

  /// For a failure: what is under way.
  std::string describe() const {
    std::string text;
    for (const auto& [id, deployment] : state_->deployments)
      for (const auto& action : deployment.steps.at(deployment.step))
        text += fmt::format("\n  deployment {}: {} {}", id, static_cast<int>(action.kind), action.service);
    for (const auto& [id, record] : state_->tasks)
      if (!is_final(record.state))
        text +=
            fmt::format("\n  {} {} {}: {}", id, record.task.origin.name, to_string(record.state),
                        record.state == TaskState::kQueued ? waiting_reasons(*state_, record).front() : "");
    for (const auto& [id, record] : state_->services)
      text += fmt::format("\n  {}: {} of {}, not before {}", id, record.applied.instances,
                          record.target.instances, format_time(record.not_before));
    return text;
  }

  Random random_;
  TimePoint now_ = kNow;
  std::multimap<TimePoint, std::function<void()>> agenda_;
  SimulatedEngine engine_;
  std::map<std::string, std::string> journal_;
  std::map<std::string, TaskRecord> changed_;  ///< tasks that changed since the last crash
  Outcome unwritten_;                          ///< everything else that did
  std::unique_ptr<State> state_;               ///< null while the daemon is away
  TimePoint up_since_{};
  placement::Node machine_ = node_with(kGpus);
  std::optional<TimePoint> wakes_at_;
  bool calm_ = false;
  int submitted_ = 0;
  SimulatedSchedules schedules_;
  std::vector<std::unique_ptr<SimulatedFramework>> frameworks_;
};

}  // namespace drover::control::testing

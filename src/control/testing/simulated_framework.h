#pragma once

// A scheduler of the Mesos API in a simulation, as the state machine sees it: it comes and goes, launches
// what it was offered, kills, and is told of every update until it has acknowledged it. It knows what it
// launched, and what it must have been told.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "control/frameworks.h"
#include "control/testing/machine.h"
#include "control/testing/world.h"

namespace drover::control::testing {

using namespace std::chrono_literals;

class SimulatedFramework {
 public:
  /// As the master has it: a lost connection, and a restart of the daemon.
  static constexpr std::chrono::milliseconds kPatience{1000};
  static constexpr std::chrono::milliseconds kPatienceAfterRestart{60'000};

  SimulatedFramework(World& world, int number) : world_(world), number_(number) { act(); }

  /// Once it counts: what the daemon itself wrote down of a framework.
  void observe(const Event& event) {
    if (id_.empty()) return;
    if (const auto* away = std::get_if<event::FrameworkDisconnected>(&event);
        away != nullptr && away->id == id_)
      leaves_at_ = world_.now() + std::max(failover_timeout_, away->patience);
    if (const auto* back = std::get_if<event::FrameworkSubscribed>(&event);
        back != nullptr && back->id == id_)
      leaves_at_.reset();
    if (const auto* end = std::get_if<event::FrameworkTornDown>(&event); end != nullptr && end->id == id_)
      torn_down_ = true;
  }
  void on_notice(const Notice& notice) {
    const auto* update = std::get_if<notice::StatusUpdated>(&notice);
    if (update != nullptr && update->framework == id_) deliver(update->task_id, 10s);
    const auto* removed = std::get_if<notice::FrameworkRemoved>(&notice);
    if (removed != nullptr && removed->framework == id_) connected_ = false;
  }
  void lose_connection() { connected_ = false; }

  void check(const State& state) const {
    if (id_.empty()) return;
    const auto found = state.frameworks.find(id_);
    if (found == state.frameworks.end()) return;
    const auto now = world_.now();
    if (found->second.removed_at)
      world_.expect(torn_down_ || (leaves_at_ && *leaves_at_ <= now),
                    [&] { return "framework '" + id_ + "' was removed before its time"; });
    else
      world_.expect(!leaves_at_ || *leaves_at_ + 2ms > now || world_.up_since() + 2ms > now,
                    [&] { return "framework '" + id_ + "' should have been removed"; });
    for (const auto& [key, row] : state.framework_tasks) {
      if (row.framework != id_) continue;
      world_.expect(!found->second.removed_at, [&] { return "'" + key + "' outlives its framework"; });
      const auto* record = state.find(row.id);
      world_.expect(record == nullptr || record->preemptions == 0,
                    [&] { return "'" + key + "' was put back"; });
      world_.expect(is_terminal(row.told) == (record == nullptr || is_final(record->state)),
                    [&] { return "of '" + key + "' is told " + row.told; });
      world_.expect(!is_terminal(row.told) || !row.updates.empty(),
                    [&] { return "'" + key + "' is kept though all was acknowledged"; });
    }
  }

  void check_settled(const State& state) const {
    const auto found = state.frameworks.find(id_);
    if (id_.empty() || found == state.frameworks.end() || found->second.removed_at) return;
    world_.expect(connected_, [&] { return "framework '" + id_ + "' does not come back"; });
    for (const auto& [task, known] : tasks_)
      world_.expect(known.over, [&] { return "nobody told how '" + task + "' ended: " + known.state; });
  }

  std::int64_t told = 0, launched = 0, fail_overs = 0, preempted = 0;

 private:
  struct Known {
    bool sure = false;  ///< that it was launched
    std::string state;
    std::set<std::string> received;  ///< updates, by their UUIDs
    bool over = false;               ///< its last update was acknowledged
  };

  void act() {
    const auto pause = connected_ ? world_.any_time(1s, 1h) : world_.any_time(500ms, 20min);
    world_.later(pause, [this] {
      if (!connected_)
        subscribe();
      else if (!world_.calm())
        work();
      act();
    });
  }

  void work() {
    switch (world_.any(0, 9)) {
      case 0:
        if (world_.happens(200)) tear_down();
        break;
      case 1:
        lose();
        break;
      case 2:
      case 3:
        kill();
        break;
      case 4:
        ++fail_overs;  // another one of it takes over: the first is no longer told
        subscribe();
        break;
      case 5:
        launch_again();
        break;
      default:
        accept();
    }
  }

  void subscribe() {
    if (world_.state() == nullptr) return;
    if (id_.empty()) {
      failover_timeout_ = world_.any_of(std::vector<std::chrono::milliseconds>{0ms, 10min, 24h});
      knows_killing_ = world_.any(0, 1) == 1;
      knows_partitions_ = world_.any(0, 1) == 1;
    }
    const auto id = id_.empty() ? next_framework_id(*world_.state(), fmt::format("master{}", number_)) : id_;
    FrameworkRecord record;
    record.name = fmt::format("framework {}", number_);
    record.owner_name = record.user = "root";
    record.failover_timeout = failover_timeout_;
    record.knows_gpus = true;
    record.knows_killing = knows_killing_;
    record.knows_partitions = knows_partitions_;
    id_ = id;
    connected_ = world_.process(event::FrameworkSubscribed{id, record});
    if (connected_) return subscribed();
    const auto* state = world_.state();
    if (state == nullptr) return;  // who knows?
    const auto found = state->frameworks.find(id);
    if (found == state->frameworks.end() || found->second.removed_at) forget();
  }

  /// What it is not sure of it asks for; what it has not acknowledged it is told again.
  void subscribed() {
    const auto& rows = world_.state()->framework_tasks;
    for (auto known = tasks_.begin(); known != tasks_.end();) {
      const bool there = rows.contains(framework_task_key(id_, known->first));
      if (!known->second.sure && !there) {
        known = tasks_.erase(known);
        continue;
      }
      known->second.sure = true;
      world_.expect(there || known->second.over || ends_acknowledged(known->second),
                    [&] { return "the daemon lost '" + known->first + "'"; });
      if (!there) known->second.over = true;
      ++known;
    }
    std::vector<std::string> unacknowledged;
    for (const auto& [key, row] : rows)
      if (row.framework == id_ && !row.updates.empty()) unacknowledged.push_back(row.task_id);
    for (const auto& task : unacknowledged) deliver(task, 10s);
  }

  /// The daemon may have been killed between an acknowledgement and its answer.
  static bool ends_acknowledged(const Known& known) { return is_terminal(known.state); }

  /// Its id is gone for ever: it comes back as another one.
  void forget() {
    id_.clear();
    connected_ = torn_down_ = false;
    leaves_at_.reset();
    tasks_.clear();
  }

  void lose() {
    connected_ = false;
    world_.process(event::FrameworkDisconnected{id_, kPatience});
  }

  void tear_down() {
    connected_ = false;
    world_.process(event::FrameworkTornDown{id_});
  }

  /// It launches no more than is free, as an offer says; now and then a group.
  void accept() {
    const auto& state = *world_.state();
    int free = static_cast<int>(state.machine().inventory.devices.size());
    for (const auto& id : state.active) free -= static_cast<int>(state.tasks.at(id).gpus.size());
    const bool group = world_.happens(300);
    const int size = group ? static_cast<int>(world_.any(2, 3)) : 1;
    const int gpus = static_cast<int>(world_.any(0, 2));
    if (size * gpus > free) return;  // declined
    event::FrameworkLaunched launch;
    for (int i = 0; i < size; ++i) {
      const auto name = fmt::format("task-{}", ++count_);
      auto wanted = task("", gpus);
      wanted.name = name;
      wanted.origin = {workload::OriginKind::kFramework, id_, name, ""};
      launch.launches.push_back({group ? "executor" : name, std::move(wanted)});
      tasks_[name] = {};
    }
    launched += size;
    const bool done = world_.process(launch);
    for (const auto& each : launch.launches)
      if (const auto known = tasks_.find(each.task.origin.task_id); done && known != tasks_.end())
        known->second.sure = true;
  }

  /// One of the same id while the first runs is a mistake.
  void launch_again() {
    for (const auto& [name, known] : tasks_) {
      const auto* row = row_of(name);
      const auto* record = row == nullptr ? nullptr : world_.state()->find(row->id);
      if (record == nullptr || is_final(record->state)) continue;
      auto wanted = task("", 0);
      wanted.origin = {workload::OriginKind::kFramework, id_, name, ""};
      return world_.expect(!world_.process(event::FrameworkLaunched{{{name, std::move(wanted)}}}),
                           [&] { return "'" + name + "' was launched twice"; });
    }
  }

  void kill() {
    std::vector<std::string> alive;
    for (const auto& [name, known] : tasks_)
      if (!known.over) alive.push_back(name);
    if (alive.empty()) return;
    if (const auto* row = row_of(world_.any_of(alive)))
      world_.process(event::StopRequested{std::string(row->id), false});
  }

  const FrameworkTask* row_of(const std::string& task) const {
    if (world_.state() == nullptr) return nullptr;
    const auto& rows = world_.state()->framework_tasks;
    const auto found = rows.find(framework_task_key(id_, task));
    return found == rows.end() ? nullptr : &found->second;
  }

  /// Tells it the first update of a task, again and again until that is acknowledged.
  void deliver(const std::string& task, std::chrono::milliseconds again) {
    world_.later(world_.any_time(0ms, 2s), [this, task, again, id = id_] {
      const auto* row = row_of(task);
      if (!connected_ || id != id_ || row == nullptr || row->updates.empty()) return;
      const auto update = row->updates.front();
      if (world_.happens(50)) {  // this one is lost on the way
        return world_.later(again, [this, task, again] { deliver(task, std::min(again * 2, 600'000ms)); });
      }
      on_update(task, update);
      if (!world_.process(event::UpdateAcknowledged{id_, task, update.uuid})) return;
      if (is_terminal(update.state) && row_of(task) == nullptr) tasks_[task].over = true;
    });
  }

  void on_update(const std::string& task, const StatusUpdate& update) {
    const auto found = tasks_.find(task);
    if (found == tasks_.end()) return world_.expect(false, [&] { return "'" + task + "' is nobody's"; });
    auto& known = found->second;
    known.sure = true;
    if (!known.received.insert(update.uuid).second) return;  // told again
    ++told;
    world_.expect(may_follow(known.state, update.state),
                  [&] { return fmt::format("'{}' is {} after {}", task, update.state, known.state); });
    known.state = update.state;
    if (update.reason != "REASON_CONTAINER_PREEMPTED") return;
    ++preempted;
    world_.expect(update.state == (knows_partitions_ ? "TASK_GONE" : "TASK_LOST"),
                  [&] { return fmt::format("'{}' made room and is {}", task, update.state); });
  }

  static bool is_terminal(const std::string& state) {
    static const std::set<std::string> kTerminal = {"TASK_FINISHED", "TASK_FAILED", "TASK_KILLED",
                                                    "TASK_LOST", "TASK_GONE"};
    return kTerminal.contains(state);
  }
  bool may_follow(const std::string& before, const std::string& after) const {
    if (is_terminal(before)) return false;
    if (after == "TASK_STARTING") return before.empty();
    if (after == "TASK_RUNNING") return before == "TASK_STARTING";
    if (after == "TASK_KILLING")
      return knows_killing_ && (before == "TASK_STARTING" || before == "TASK_RUNNING");
    return is_terminal(after);
  }

  World& world_;
  int number_;
  std::string id_;
  bool connected_ = false, torn_down_ = false, knows_killing_ = false, knows_partitions_ = false;
  std::chrono::milliseconds failover_timeout_{};
  std::optional<TimePoint> leaves_at_;
  std::map<std::string, Known> tasks_;
  int count_ = 0;
};

}  // namespace drover::control::testing

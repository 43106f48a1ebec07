#pragma once

// A machine with schedules, for tests: time goes on by ticks as in the daemon.

#include <string>
#include <vector>

#include "control/schedules.h"
#include "control/testing/machine.h"

namespace drover::control::testing {

/// 2023-11-14T22:13:20Z.
struct Scheduler {
  Machine machine;
  TimePoint now = kNow;

  explicit Scheduler(int gpus = 1) : machine(gpus) {}

  static workload::Schedule schedule(const std::string& name, const std::string& repetition) {
    workload::Schedule result;
    result.name = name;
    result.task = task("", 0);
    result.task.name = name;
    result.task.command = {"/bin/sh", "-c", "work"};
    result.repetition = repetition;
    return result;
  }
  static workload::Schedule child(const std::string& name, std::set<std::string> parents) {
    auto result = schedule(name, "");
    result.parents = std::move(parents);
    return result;
  }

  Status on(const Event& event) { return machine.on(event, now); }
  Status define(workload::Schedule schedule) { return on(event::ScheduleDefined{std::move(schedule)}); }
  /// As the daemon does: ticks when something is due, until then.
  void go_to(TimePoint time) {
    while (true) {
      const auto next = next_deadline(machine.state);
      if (!next || *next > time) break;
      now = std::max(now, *next);
      (void)on(event::Tick{});
    }
    now = time;
  }
  void go(std::chrono::milliseconds duration) { go_to(now + duration); }
  /// The daemon was not there: one tick at its end.
  void sleep(std::chrono::milliseconds duration) {
    now += duration;
    machine.restart();
    (void)on(event::Tick{});
  }

  const ScheduleRecord& record(const std::string& name) const { return machine.state.schedules.at(name); }
  std::vector<const TaskRecord*> tasks(const std::string& name) const {
    std::vector<const TaskRecord*> found;
    for (const auto& [id, task] : machine.state.tasks)
      if (task.task.origin.name == name) found.push_back(&task);
    std::sort(found.begin(), found.end(),
              [](const auto* a, const auto* b) { return a->sequence < b->sequence; });
    return found;
  }
  /// The task of the run that goes on; "" when there is none.
  std::string running(const std::string& name) const {
    const auto& active = record(name).active;
    return active.empty() ? "" : active.front().task_id;
  }
  void end(const std::string& name, int status) {
    const auto id = running(name);
    (void)on(event::Started{id, now});
    workload::Ending ending;
    ending.exit_status = status;
    ending.finished_at = now;
    (void)on(event::Ended{id, ending});
  }
  std::vector<std::string> history(const std::string& name) const {
    constexpr std::array kWords = {"succeeded", "failed", "killed", "lost", "skipped"};
    std::vector<std::string> words;
    for (const auto& entry : record(name).history) {
      std::string word = kWords.at(static_cast<std::size_t>(entry.outcome));
      if (entry.count > 1) word += " " + std::to_string(entry.count);
      words.push_back(word);
    }
    return words;
  }
};

}  // namespace drover::control::testing

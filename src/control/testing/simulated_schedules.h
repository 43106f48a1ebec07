#pragma once

// People with schedules, in a simulation: they define them, change their minds, start and stop runs. Every
// run that starts is held against ScheduleModel.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "control/testing/machine.h"
#include "control/testing/schedule_model.h"
#include "control/testing/world.h"

namespace drover::control::testing {

class SimulatedSchedules {
 public:
  explicit SimulatedSchedules(World& world) : world_(world) { act(); }

  /// Once it counts, before it is the state.
  void observe(const Event& event, const Outcome& outcome) {
    std::vector<TaskRecord> ended;
    std::vector<const TaskRecord*> started;
    for (const auto& record : outcome.changed) {
      if (record.task.origin.kind != workload::OriginKind::kSchedule) continue;
      const auto* before = world_.state()->find(record.task.id);
      if (before == nullptr) started.push_back(&record);
      if (before != nullptr && is_final(record.state) && !is_final(before->state)) ended.push_back(record);
    }
    auto expected = model_.expect(event, ended, world_.now());
    for (const auto* record : started) {
      const auto run = run_of(*record);
      const auto found = std::ranges::find(expected, run);
      world_.expect(found != expected.end(), [&] { return describe(run) + " has no business to start"; });
      if (found == expected.end()) return;
      expected.erase(found);
      model_.started(*record, run);
    }
    world_.expect(expected.empty(), [&] { return describe(expected.front()) + " was not started"; });
  }

  void check(const State& state) const {
    const auto overdue = model_.overdue(world_.up_since(), world_.now() - 2ms);
    world_.expect(overdue.empty(), [&] { return overdue; });
    world_.expect(state.schedules.size() == model_.entries.size(), [] { return "a schedule was lost"; });
    for (const auto& [name, entry] : model_.entries) {
      const auto found = state.schedules.find(name);
      if (found == state.schedules.end()) return world_.expect(false, [&] { return name + " was lost"; });
      const auto& record = found->second;
      std::set<std::string> active;
      for (const auto& run : record.active) active.insert(run.task_id);
      world_.expect(active == entry.active, [&] { return "'" + name + "' has other runs"; });
      world_.expect(record.successes == entry.successes && record.errors == entry.errors, [&] {
        return fmt::format("'{}' counts {} and {} instead of {} and {}", name, record.successes,
                           record.errors, entry.successes, entry.errors);
      });
      world_.expect(record.retries.size() == entry.retries.size(),
                    [&] { return "'" + name + "' will be tried again another time"; });
    }
  }

  /// What goes on comes to its end, and nothing more begins.
  void disable_all() {
    for (auto [name, entry] : std::map(model_.entries)) {
      entry.schedule.disabled = true;
      model_.announce(name, entry.times);
      world_.process(event::ScheduleDefined{entry.schedule});
    }
  }
  void check_settled(const State& state) const {
    check(state);
    for (const auto& [name, record] : state.schedules)
      world_.expect(record.active.empty() && record.retries.empty(),
                    [&] { return "'" + name + "' does not come to rest"; });
  }

  const ScheduleModel& model() const { return model_; }

 private:
  static constexpr int kSchedules = 7;

  static ExpectedRun run_of(const TaskRecord& record) {
    const auto number = [&](const char* name) { return std::stoll(record.task.environment.at(name)); };
    return {record.task.origin.name, TimePoint(std::chrono::milliseconds(number("CHRONOS_JOB_RUN_TIME"))),
            static_cast<int>(number("CHRONOS_JOB_RUN_ATTEMPT"))};
  }
  static std::string describe(const ExpectedRun& run) {
    return fmt::format("attempt {} of '{}' for {}", std::get<2>(run), std::get<0>(run),
                       format_time(std::get<1>(run)));
  }

  void act() {
    world_.later(world_.any_time(1s, 6h), [this] {
      if (world_.calm()) return;
      const auto name = any_name();
      switch (world_.any(0, 9)) {
        case 0:
        case 1:
        case 2:
        case 3:
          define(name);
          break;
        case 4:
          world_.process(event::ScheduleRemoved{name});
          break;
        case 5:
          world_.process(event::ScheduleKilled{name});
          break;
        case 6:
          world_.process(event::ScheduleMarked{name});
          break;
        case 7:
          stop_run(name);
          break;
        default:
          world_.process(event::ScheduleRunRequested{name, world_.happens(500) ? "again" : ""});
      }
      act();
    });
  }

  std::string any_name() { return fmt::format("job-{}", world_.any(0, kSchedules - 1)); }

  void define(const std::string& name) {
    workload::Schedule wanted;
    wanted.name = name;
    wanted.task = task("", static_cast<int>(world_.any(0, 1)));
    wanted.task.name = name;
    wanted.task.command = {"/bin/sh", "-c", "work"};
    if (world_.happens(250)) wanted.task.timeout = 10min;
    wanted.retries = static_cast<int>(world_.any(0, 6));
    wanted.concurrent = world_.happens(400);
    wanted.disabled = world_.happens(100);
    wanted.soft_error = world_.happens(500);
    if (world_.happens(300)) wanted.epsilon = 10min;
    std::optional<ScheduleTimes> times;
    if (world_.happens(350)) {
      wanted.parents = {any_name(), any_name()};
    } else {
      times = any_times();
      wanted.repetition = times->text();
      wanted.time_zone = times->zone();
    }
    // The same times again, as deployment scripts send them.
    if (const auto known = model_.entries.find(name);
        known != model_.entries.end() && known->second.times && world_.happens(300)) {
      times = known->second.times;
      wanted.parents.clear();
      wanted.repetition = times->text();
      wanted.time_zone = times->zone();
    }
    model_.announce(name, times);
    world_.process(event::ScheduleDefined{wanted});
  }

  ScheduleTimes any_times() {
    ScheduleTimes times;
    times.start = world_.now() + world_.any_time(-48h, 4h);
    switch (world_.any(0, 7)) {
      case 0:
        times.kind = ScheduleTimes::Kind::kNightly;
        // 02:30 is left out in spring and comes twice in autumn.
        times.start = std::chrono::floor<std::chrono::days>(times.start) + 2h + 30min;
        break;
      case 1:
        times.kind = ScheduleTimes::Kind::kMonthly;
        times.start -= 31 * 24h * world_.any(0, 20);
        break;
      default:
        times.period = world_.any_of(
            std::vector<std::chrono::milliseconds>{15min, 30min, 1h, 2h, 6h, 12h, 24h, 1h + 1s});
    }
    if (world_.happens(300)) times.count = world_.any(0, 60);
    return times;
  }

  void stop_run(const std::string& name) {
    if (world_.state() == nullptr) return;
    const auto found = world_.state()->schedules.find(name);
    if (found != world_.state()->schedules.end() && !found->second.active.empty())
      world_.process(event::StopRequested{found->second.active.front().task_id, world_.happens(300)});
  }

  World& world_;
  ScheduleModel model_;
};

}  // namespace drover::control::testing

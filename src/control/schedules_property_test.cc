// What must hold of schedules whatever happens, over random histories.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/property_steps.h"
#include "control/testing/schedules.h"

namespace drover::control {
namespace {

using namespace std::chrono_literals;
using testing::kNow;
using testing::Scheduler;

std::string any_repetition(TimePoint now) {
  if (*rc::gen::inRange(0, 3) == 0)
    return *rc::gen::element<std::string>("* * * * *", "*/7 * * * *", "13-15 22 * * *", "@hourly", "@daily");
  const auto count = *rc::gen::element<std::string>("", "", "1", "3", "50");
  const auto period = *rc::gen::element<std::string>("PT1S", "PT7S", "PT1M", "PT1H", "P1D", "P1M");
  return "R" + count + "/" + format_time(now + *rc::gen::inRange(-3600, 3600) * 1s) + "/" + period;
}

RC_GTEST_PROP(SchedulesProperty, EveryOccurrenceRunsExactlyOnceWhenTheDaemonIsThere, ()) {
  Scheduler scheduler(0);
  const auto period = *rc::gen::element<std::string>("PT1M", "PT17.5S", "PT1H", "P1D");
  const auto interval = "R/" + format_time(kNow + *rc::gen::inRange(0, 100'000) * 1ms) + "/" + period;
  const std::vector<std::string> all = {interval, "* * * * *", "14-59/3 * * * *"};
  auto job = Scheduler::schedule("j", *rc::gen::elementOf(all));
  job.concurrent = true;
  RC_ASSERT(scheduler.define(job).has_value());
  const auto repetition = *workload::Repetition::parse(job.repetition, "", kNow);
  std::vector<TimePoint> ran;
  for (int step = 0; step < 20; ++step) {
    // Now and then a restart, shorter than what is too late.
    const auto pause = *rc::gen::inRange(1, 59'000) * 1ms;
    *rc::gen::arbitrary<bool>() ? scheduler.sleep(pause) : scheduler.go(pause);
    for (const auto& run : std::vector(scheduler.record("j").active)) {
      ran.push_back(run.due);
      workload::Ending ending;
      ending.finished_at = scheduler.now;
      RC_ASSERT(scheduler.on(event::Ended{run.task_id, ending}).has_value());
    }
  }
  std::vector<TimePoint> expected;
  for (auto next = repetition.first_not_before(kNow); next->at <= scheduler.now;
       next = repetition.first_after(next->at))
    expected.push_back(next->at);
  RC_ASSERT(ran == expected);
}

/// One history with three schedules and a child, in which everything happens.
class History {
 public:
  History() : scheduler_(1) {}

  void step() {
    switch (*rc::gen::inRange(0, 12)) {
      case 0:
        define();
        break;
      case 1:
        define_child();
        break;
      case 2:
        (void)scheduler_.on(event::ScheduleRemoved{name()});
        break;
      case 3:
        (void)scheduler_.on(event::ScheduleRunRequested{name(), *rc::gen::element<std::string>("", "x")});
        break;
      case 4:
        (void)scheduler_.on(event::ScheduleKilled{name()});
        break;
      case 5:
        (void)scheduler_.on(event::ScheduleMarked{name()});
        break;
      case 6:
        scheduler_.sleep(std::chrono::seconds(*rc::gen::element(1, 30, 600, 100'000)));
        break;
      case 7:
      case 8:
        scheduler_.go(std::chrono::milliseconds(*rc::gen::element(1, 999, 5'000, 60'000)));
        break;
      default:
        end_one();
        break;
    }
    scheduler_.go(1ms);
    (void)scheduler_.on(event::Tick{});
    check();
  }

 private:
  static std::string name() { return *rc::gen::element<std::string>("a", "b", "c"); }

  void define() {
    auto job = Scheduler::schedule(name(), any_repetition(scheduler_.now));
    job.concurrent = *rc::gen::arbitrary<bool>();
    job.disabled = *rc::gen::inRange(0, 8) == 0;
    job.soft_error = *rc::gen::arbitrary<bool>();
    job.retries = *rc::gen::inRange(0, 3);
    if (*rc::gen::arbitrary<bool>()) job.task.resources.gpus = {{1, {}}};
    if (*rc::gen::inRange(0, 4) == 0) job.task.timeout = 20s;
    RC_ASSERT(scheduler_.define(job).has_value());
  }

  void define_child() { (void)scheduler_.define(Scheduler::child(name(), {name(), name()})); }

  void end_one() {
    std::vector<std::string> ids;
    for (const auto& [id, task] : scheduler_.machine.state.tasks)
      if (owns_resources(task.state)) ids.push_back(id);
    if (ids.empty()) return;
    const auto id = *rc::gen::elementOf(ids);
    if (*rc::gen::arbitrary<bool>()) (void)scheduler_.on(event::Started{id, scheduler_.now});
    workload::Ending ending;
    ending.exit_status = *rc::gen::element(0, 0, 1);
    ending.lost = *rc::gen::inRange(0, 10) == 0;
    ending.stopped = scheduler_.machine.at(id) == TaskState::kStopping;
    ending.finished_at = scheduler_.now;
    for (int i = *rc::gen::inRange(1, 3); i > 0; --i)
      RC_ASSERT(scheduler_.on(event::Ended{id, ending}).has_value());
  }

  void check() {
    const auto& state = scheduler_.machine.state;
    for (const auto& [id, task] : state.tasks) {
      const auto [known, is_new] = seen_.emplace(task.task.origin.name + " " + task.task.origin.task_id, id);
      RC_ASSERT(is_new || known->second == id);  // nothing runs twice
    }
    ByTime due, ended;  // what is kept by time is what a look at everything finds
    for (const auto& [name, record] : state.schedules)
      if (const auto next = next_time(record)) due.insert({*next, name});
    for (const auto& [id, task] : state.tasks)
      if (is_final(task.state)) ended.insert({*steady_end(task), id});
    RC_ASSERT(state.schedules_due == due);
    RC_ASSERT(state.ended == ended);
    for (const auto& [name, record] : state.schedules) {
      RC_ASSERT(record.schedule.parents.empty() != record.schedule.repetition.empty());
      // In parentheses: RapidCheck takes an || apart, and looks at both of its sides.
      RC_ASSERT((!record.due || *record.due > scheduler_.now));
      RC_ASSERT(record.schedule.parents.empty() || !record.due);
      for (const auto& parent : record.schedule.parents) RC_ASSERT(state.schedules.contains(parent));
      for (const auto& parent : record.succeeded) RC_ASSERT(record.schedule.parents.contains(parent));
      for (const auto& retry : record.retries) RC_ASSERT(retry.not_before > scheduler_.now);
      std::set<std::string> active;
      for (const auto& run : record.active) {
        RC_ASSERT(!is_final(state.tasks.at(run.task_id).state));
        RC_ASSERT(state.tasks.at(run.task_id).task.origin.task_id == run.origin_id);
        active.insert(run.task_id);
      }
      RC_ASSERT(active.size() == record.active.size());
      RC_ASSERT(record.history.size() <= kMostHistory);
    }
  }

  Scheduler scheduler_;
  std::map<std::string, std::string> seen_;  ///< task of an origin's name and task
};

RC_GTEST_PROP(SchedulesProperty, NothingRunsTwiceOrIsLostWhateverHappens, ()) {
  History history;
  for (int i = property_steps(60); i > 0; --i) history.step();
}

}  // namespace
}  // namespace drover::control

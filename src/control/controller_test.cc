#include "control/controller.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <nlohmann/json.hpp>

namespace drover::control {
namespace {

using namespace std::chrono_literals;

const TimePoint kNow = TimePoint(1'700'000'000'000ms);

placement::whole::Node node_with(int gpus, std::int64_t milli_cpus = 64'000) {
  placement::whole::Node node;
  for (int i = 0; i < gpus; ++i) {
    gpu::Device device;
    device.uuid = "GPU-" + std::to_string(i);
    device.index = i;
    node.inventory.devices.push_back(device);
  }
  node.inventory.links.assign(static_cast<std::size_t>(gpus),
                              std::vector<gpu::Link>(static_cast<std::size_t>(gpus)));
  node.milli_cpus = milli_cpus;
  node.memory_bytes = 1ULL << 40;
  return node;
}

workload::Task task(const std::string& id, int gpus) {
  workload::Task result;
  result.id = id;
  result.name = id;
  result.command = {"true"};
  if (gpus > 0) result.resources.gpus = {{gpus, {}}};
  return result;
}

workload::Ending exited(int status) {
  workload::Ending ending;
  ending.exit_status = status;
  ending.finished_at = kNow;
  return ending;
}

/// A state machine whose outcomes are applied at once, with the actions it asked for last.
struct Machine {
  State state;
  std::vector<Action> actions;

  explicit Machine(int gpus) : state(restore({}, node_with(gpus))) {}

  Status on(const Event& event, TimePoint now = kNow) {
    auto outcome = decide(state, event, now);
    if (!outcome) return Failure(outcome.error());
    actions = outcome->actions;
    apply(state, *outcome);
    return {};
  }
  TaskState at(const std::string& id) const { return state.tasks.at(id).state; }
  template <typename T>
  std::vector<std::string> asked() const {
    std::vector<std::string> ids;
    for (const auto& action : actions)
      if (const auto* specific = std::get_if<T>(&action)) ids.push_back(specific->id);
    return ids;
  }
};

TEST(Controller, GivesIdentitiesAndTakesThemBack) {
  Machine machine(2);
  ASSERT_TRUE(machine.on(event::Submitted{task("a", 2)}));
  EXPECT_EQ(machine.at("a"), TaskState::kStarting);
  EXPECT_EQ(uuids_of(machine.state.tasks.at("a")), (std::vector<std::string>{"GPU-0", "GPU-1"}));
  EXPECT_EQ(machine.asked<action::Launch>(), std::vector<std::string>{"a"});

  ASSERT_TRUE(machine.on(event::Submitted{task("b", 1)}));
  EXPECT_EQ(machine.at("b"), TaskState::kQueued);
  EXPECT_EQ(waiting_reasons(machine.state).at("b").front(), "1 GPU is wanted and 0 of 2 are free");

  ASSERT_TRUE(machine.on(event::Ended{"a", exited(0)}));
  EXPECT_EQ(machine.at("a"), TaskState::kFinished);
  EXPECT_EQ(machine.at("b"), TaskState::kStarting);
  EXPECT_EQ(machine.asked<action::Clean>(), std::vector<std::string>{"a"});
  EXPECT_EQ(machine.asked<action::Launch>(), std::vector<std::string>{"b"});
}

TEST(Controller, RefusesWhatCanNeverRun) {
  Machine machine(2);
  const auto refused = machine.on(event::Submitted{task("a", 3)});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "3 GPUs are asked for, but this machine has 2");
  EXPECT_TRUE(machine.state.tasks.empty());
}

TEST(Controller, ALaterTaskPassesOnlyWhenItTakesNothingThatThoseAheadWaitFor) {
  Machine machine(2);
  ASSERT_TRUE(machine.on(event::Submitted{task("holder", 1)}));
  ASSERT_TRUE(machine.on(event::Submitted{task("big", 2)}));
  ASSERT_TRUE(machine.on(event::Submitted{task("small", 1)}));
  ASSERT_TRUE(machine.on(event::Submitted{task("cpu", 0)}));
  EXPECT_EQ(machine.at("big"), TaskState::kQueued);
  EXPECT_EQ(machine.at("small"), TaskState::kQueued) << "a free GPU is kept for those ahead";
  EXPECT_EQ(machine.at("cpu"), TaskState::kStarting);
  EXPECT_EQ(waiting_reasons(machine.state).at("small").back(), "1 task stands before it in the queue");

  auto hungry = task("hungry", 0);
  hungry.resources.milli_cpus = 62'000;  // 64 less two running, less what 'big' and 'small' will need
  ASSERT_TRUE(machine.on(event::Submitted{hungry}));
  EXPECT_EQ(machine.at("hungry"), TaskState::kQueued);
}

TEST(Controller, StopEndsAWaitingTaskAtOnceAndARunningOneThroughTheEngine) {
  Machine machine(1);
  ASSERT_TRUE(machine.on(event::Submitted{task("runs", 1)}));
  ASSERT_TRUE(machine.on(event::Submitted{task("waits", 1)}));
  ASSERT_TRUE(machine.on(event::StopRequested{"waits"}));
  EXPECT_EQ(machine.at("waits"), TaskState::kKilled);
  ASSERT_TRUE(machine.on(event::Started{"runs", kNow}));
  ASSERT_TRUE(machine.on(event::StopRequested{"runs"}));
  EXPECT_EQ(machine.at("runs"), TaskState::kStopping);
  EXPECT_EQ(machine.asked<action::Stop>(), std::vector<std::string>{"runs"});
  ASSERT_TRUE(machine.on(event::Ended{"runs", exited(143)}));
  EXPECT_EQ(machine.at("runs"), TaskState::kKilled);
  EXPECT_EQ(machine.on(event::StopRequested{"runs"}).error().kind, ErrorKind::kConflict);
}

TEST(Controller, ATaskThatSucceedsWhileItIsStoppedHasSucceeded) {
  Machine machine(0);
  ASSERT_TRUE(machine.on(event::Submitted{task("a", 0)}));
  ASSERT_TRUE(machine.on(event::StopRequested{"a"}));
  ASSERT_TRUE(machine.on(event::Ended{"a", exited(0)}));
  EXPECT_EQ(machine.at("a"), TaskState::kFinished);
}

TEST(Controller, StopsATaskWhoseTimeIsUp) {
  Machine machine(0);
  auto limited = task("a", 0);
  limited.timeout = 5s;
  ASSERT_TRUE(machine.on(event::Submitted{limited}));
  EXPECT_EQ(next_deadline(machine.state), std::nullopt);
  ASSERT_TRUE(machine.on(event::Started{"a", kNow}));
  EXPECT_EQ(next_deadline(machine.state), kNow + 5s);
  ASSERT_TRUE(machine.on(event::Tick{}, kNow + 4s));
  EXPECT_EQ(machine.at("a"), TaskState::kRunning);
  ASSERT_TRUE(machine.on(event::Tick{}, kNow + 5s));
  EXPECT_EQ(machine.asked<action::Stop>(), std::vector<std::string>{"a"});
  ASSERT_TRUE(machine.on(event::Ended{"a", exited(143)}));
  EXPECT_EQ(machine.state.tasks.at("a").reason, "stopped because its time of 5.0s was up");
}

TEST(Controller, SaysHowATaskEnded) {
  const auto reason_after = [](workload::Ending ending) {
    Machine machine(0);
    EXPECT_TRUE(machine.on(event::Submitted{task("a", 0)}));
    EXPECT_TRUE(machine.on(event::Ended{"a", ending}));
    return machine.state.tasks.at("a").reason;
  };
  EXPECT_EQ(reason_after(exited(3)), "exited with status 3");
  EXPECT_EQ(reason_after(exited(139)), "ended by signal 11");
  auto oom = exited(137);
  oom.out_of_memory = true;
  EXPECT_EQ(reason_after(oom),
            "killed because it used more than its 1 GiB of memory; ask for more with --mem");
}

TEST(Controller, AfterARestartATaskIsLaunchedAgainOnlyIfItNeverStarted) {
  Machine machine(1);
  ASSERT_TRUE(machine.on(event::Submitted{task("a", 1)}));
  ASSERT_TRUE(machine.on(event::NeverStarted{"a"}));
  EXPECT_EQ(machine.asked<action::Launch>(), std::vector<std::string>{"a"});
  ASSERT_TRUE(machine.on(event::Started{"a", kNow}));
  ASSERT_TRUE(machine.on(event::NeverStarted{"a"}));
  EXPECT_TRUE(machine.asked<action::Launch>().empty());
  EXPECT_EQ(machine.at("a"), TaskState::kLost);
}

TEST(Controller, AWishToStopSurvivesARestart) {
  Machine machine(0);
  ASSERT_TRUE(machine.on(event::Submitted{task("a", 0)}));
  ASSERT_TRUE(machine.on(event::StopRequested{"a"}));
  ASSERT_TRUE(machine.on(event::StillAlive{"a"}));
  EXPECT_EQ(machine.asked<action::Stop>(), std::vector<std::string>{"a"});
  ASSERT_TRUE(machine.on(event::NeverStarted{"a"}));
  EXPECT_EQ(machine.at("a"), TaskState::kKilled);
}

TEST(Controller, ForgetsEndedTasksAfterAWeek) {
  Machine machine(0);
  ASSERT_TRUE(machine.on(event::Submitted{task("a", 0)}));
  ASSERT_TRUE(machine.on(event::Ended{"a", exited(0)}));
  ASSERT_TRUE(machine.on(event::Tick{}, kNow + kKeepEnded));
  EXPECT_TRUE(machine.state.tasks.contains("a"));
  ASSERT_TRUE(machine.on(event::Tick{}, kNow + kKeepEnded + 1s));
  EXPECT_FALSE(machine.state.tasks.contains("a"));
  EXPECT_EQ(machine.asked<action::Forget>(), std::vector<std::string>{"a"});
}

TEST(Controller, AnUnfitGpuIsNotGiven) {
  Machine machine(2);
  auto node = node_with(2);
  node.inventory.devices[0].unfit = "it has fallen off the bus";
  ASSERT_TRUE(machine.on(event::NodeChanged{node}));
  ASSERT_TRUE(machine.on(event::Submitted{task("a", 1)}));
  EXPECT_EQ(uuids_of(machine.state.tasks.at("a")), std::vector<std::string>{"GPU-1"});
  ASSERT_TRUE(machine.on(event::Submitted{task("b", 1)}));
  EXPECT_EQ(waiting_reasons(machine.state).at("b").front(), "1 GPU is wanted and 0 of 2 are free, 1 unfit");
  ASSERT_TRUE(machine.on(event::NodeChanged{node_with(2)}));
  EXPECT_EQ(machine.at("b"), TaskState::kStarting);
}

Event random_event(const State& state, int fresh) {
  const auto any_id = [&]() -> std::string {
    if (state.tasks.empty()) return "none";
    return std::next(state.tasks.begin(), *rc::gen::inRange<long>(0, static_cast<long>(state.tasks.size())))
        ->first;
  };
  switch (*rc::gen::inRange(0, 9)) {
    case 0:
    case 1:
    case 2:
      return event::Submitted{task("t" + std::to_string(fresh), *rc::gen::inRange(0, 5))};
    case 3:
      return event::Started{any_id(), kNow};
    case 4:
    case 5:
      return event::Ended{any_id(), exited(*rc::gen::inRange(0, 3))};
    case 6:
      return event::StopRequested{any_id(), *rc::gen::arbitrary<bool>()};
    case 7:
      return event::LaunchFailed{any_id(), Error{ErrorKind::kInternal, "no"}};
    default:
      return event::NeverStarted{any_id()};
  }
}

// M2, S4: whatever happens, in whatever order and however often, no GPU has two owners, no task leaves its
// end again, and the state that a restart reads from the journal is the state that was.
TEST(Controller, PropertyNoGpuTwiceAndARestartRecoversExactly) {
  rc::check([] {
    Machine machine(4);
    const int steps = *rc::gen::inRange(1, 60);
    for (int step = 0; step < steps; ++step) {
      const auto before = machine.state.tasks;
      const auto done = machine.on(random_event(machine.state, step));
      if (!done) RC_ASSERT(machine.state.tasks == before);

      std::set<std::string> owned;
      std::vector<TaskRecord> journal;
      for (const auto& [id, record] : machine.state.tasks) {
        if (owns_resources(record.state)) {
          RC_ASSERT(record.gpus.size() == static_cast<std::size_t>(record.task.resources.gpu_count()));
          for (const auto& uuid : uuids_of(record)) RC_ASSERT(owned.insert(uuid).second);
        }
        if (const auto old = before.find(id); old != before.end() && is_final(old->second.state))
          RC_ASSERT(record == old->second);
        auto read_back = decode_record(encode(record));
        RC_ASSERT(read_back.has_value());
        RC_ASSERT(*read_back == record);
        journal.push_back(*read_back);
      }
      RC_ASSERT(usage_of(machine.state).gpus == owned);
      const auto restored = restore(journal, machine.state.node);
      RC_ASSERT(restored.tasks == machine.state.tasks);
      RC_ASSERT(restored.queue == machine.state.queue);
      RC_ASSERT(restored.active == machine.state.active);
    }
  });
}

}  // namespace
}  // namespace drover::control

#include "control/admission.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "control/testing/schedules.h"
#include "control/testing/services.h"

namespace drover::control {
namespace {

using testing::exited;
using testing::kNow;
using testing::Machine;
using testing::task;
using testing::task_of;

constexpr uid_t kMallory = 1001;
constexpr uid_t kVictim = 1002;

/// Without a GPU on the machine for them, tasks with one wait behind the first.
workload::Task of(const std::string& user, uid_t uid, const std::string& id, std::size_t bytes = 0) {
  auto result = task_of(user, uid, id, 1);
  if (bytes > 0) result.environment.edit()["FILL"] = std::string(bytes, 'x');
  return result;
}

workload::Task mallorys(const std::string& id, std::size_t bytes = 0) {
  return of("mallory", kMallory, id, bytes);
}

struct Limited : Machine {
  Limited() : Machine(1) { EXPECT_TRUE(submit(task("holder", 1))); }
};

TEST(Admission, AUserHasOnlySoManyWaitingTasks) {
  Limited machine;
  machine.state.limits.waiting_tasks = 3;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(machine.submit(mallorys("m" + std::to_string(i))));
  const auto refused = machine.submit(mallorys("m3"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kExhausted);
  EXPECT_EQ(refused.error().message, "'mallory' has 3 waiting tasks, and 3 are allowed");
  EXPECT_TRUE(refused.error().hint.ends_with("drover serve --limit waiting-tasks=N"));
  EXPECT_TRUE(machine.submit(of("victim", kVictim, "v")));
  for (int i = 0; i < 5; ++i)
    EXPECT_TRUE(machine.submit(task("r" + std::to_string(i), 1)))
        << "root is exempt from what is counted by user";

  ASSERT_TRUE(machine.on(event::StopRequested{"m0"}));
  EXPECT_TRUE(machine.submit(mallorys("m4"))) << "one waits no more";
}

TEST(Admission, TheMembersOfAGangCountEachForItself) {
  Limited machine;
  machine.state.limits.waiting_tasks = 3;
  auto gang = testing::gang("g", 4, 0);
  for (auto& member : gang) member.owner = kMallory;
  EXPECT_FALSE(machine.submit(gang));
  gang = testing::gang("h", 3, 0);
  for (auto& member : gang) member.owner = kMallory;
  EXPECT_TRUE(machine.submit(gang));
}

TEST(Admission, ADefinitionHasOnlySoManyBytes) {
  Limited machine;
  machine.state.limits.definition_bytes = 4096;
  const auto refused = machine.submit(mallorys("m", 5000));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kInvalid);
  EXPECT_NE(refused.error().message.find("and 4096 are allowed"), std::string::npos)
      << refused.error().message;
  auto labels = mallorys("l");
  for (int i = 0; i < 500; ++i) labels.labels.edit()["label" + std::to_string(i)] = "value";
  EXPECT_FALSE(machine.submit(labels));
  auto roots = task("r", 1);
  roots.command.edit().emplace_back(5000, 'x');
  EXPECT_FALSE(machine.submit(roots)) << "root is not exempt: it is no matter of fairness";
  EXPECT_TRUE(machine.submit(mallorys("m", 1000)));
}

TEST(Admission, AllThatAUserHasIsLimited) {
  Limited machine;
  machine.state.limits.stored_bytes = 10'000;
  ASSERT_TRUE(machine.submit(mallorys("m0", 3000)));
  ASSERT_TRUE(machine.submit(mallorys("m1", 3000)));
  const auto refused = machine.submit(mallorys("m2", 3000));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kExhausted);
  EXPECT_NE(refused.error().message.find("and 9.8 KiB are allowed"), std::string::npos)
      << refused.error().message;
  EXPECT_TRUE(machine.submit(of("victim", kVictim, "v", 3000)));
}

TEST(Admission, TasksThatHaveEndedMakeRoomTheOldestFirst) {
  Limited machine;
  machine.state.limits.stored_bytes = 20'000;
  for (int i = 0; i < 30; ++i) {
    const auto id = "m" + std::to_string(i);
    ASSERT_TRUE(machine.submit(mallorys(id, 3000))) << i;
    ASSERT_TRUE(machine.on(event::StopRequested{id}, kNow + std::chrono::seconds(i)));
  }
  const auto& usage = machine.state.usages.at(kMallory);
  EXPECT_LE(usage.live_bytes + usage.ended_bytes, 20'000U + 5'000U);
  EXPECT_FALSE(machine.state.tasks.contains("m0"));
  EXPECT_TRUE(machine.state.tasks.contains("m29"));
}

TEST(Admission, WhatIsCountedIsTheSameAfterARestart) {
  Limited machine;
  ASSERT_TRUE(machine.submit(mallorys("waits", 100)));
  ASSERT_TRUE(machine.submit(mallorys("ended", 200)));
  ASSERT_TRUE(machine.submit(of("victim", kVictim, "v")));
  ASSERT_TRUE(machine.submit(of("victim", kVictim, "forgotten")));
  ASSERT_TRUE(machine.on(event::StopRequested{"ended"}));
  ASSERT_TRUE(machine.on(event::StopRequested{"forgotten"}));
  ASSERT_TRUE(machine.on(event::RemoveRequested{"forgotten"}));
  const auto before = machine.state.usages;
  EXPECT_EQ(before.at(kMallory).waiting, 1U);
  EXPECT_EQ(before.at(kMallory).ended_bytes, stored_bytes(machine.record("ended").task));
  EXPECT_EQ(before.at(kVictim).ended_bytes, 0U);
  machine.restart();
  EXPECT_EQ(machine.state.usages, before);
  ASSERT_TRUE(machine.on(event::StopRequested{"waits"}));
  for (const auto* id : {"waits", "ended"}) ASSERT_TRUE(machine.on(event::RemoveRequested{id}));
  EXPECT_FALSE(machine.state.usages.contains(kMallory));
}

TEST(Admission, OnlySoManyJobsOfAUserArePlannedAndTheOthersMoveUp) {
  Limited machine;
  const auto id = [](std::size_t number) { return fmt::format("m{:04}", number); };
  for (std::size_t i = 0; i < kPlannedOfUser + 2; ++i) ASSERT_TRUE(machine.submit(mallorys(id(i))));
  ASSERT_TRUE(machine.submit(of("victim", kVictim, "v")));
  const auto& positions = machine.state.positions;
  EXPECT_EQ(positions->reasons.size(), kPlannedOfUser + 1);
  EXPECT_EQ(positions->order.size(), kPlannedOfUser + 3);
  EXPECT_EQ(positions->order.back(), id(kPlannedOfUser + 1));
  EXPECT_EQ(machine.reasons(id(kPlannedOfUser + 1)).front(),
            "it stands behind 500 others of 'mallory' in the queue 'default'");
  EXPECT_EQ(machine.reasons("v").front(), "1 GPU is wanted and 0 of 1 are free");
  auto without = task_of("mallory", kMallory, "without", 0);
  ASSERT_TRUE(machine.submit(without));
  EXPECT_EQ(machine.at("without"), TaskState::kStarting) << "those with GPUs are not in its way";

  ASSERT_TRUE(machine.on(event::StopRequested{id(0)}));
  EXPECT_EQ(machine.reasons(id(kPlannedOfUser)).front(), "1 GPU is wanted and 0 of 1 are free");
  ASSERT_TRUE(machine.on(event::Ended{"holder", exited(0)}));
  EXPECT_EQ(machine.at("v"), TaskState::kStarting) << "mallory has something already";
}

workload::Service mallorys_service(const std::string& id, int instances, std::size_t bytes = 0) {
  auto service = testing::service(id, instances);
  service.task.owner = kMallory;
  service.task.owner_name = "mallory";
  service.task.environment.edit()["FILL"] = std::string(bytes, 'x');
  return service;
}

TEST(Admission, EveryInstanceOfAServiceCounts) {
  testing::Services machine(0);
  machine.state.limits.waiting_tasks = 100;
  machine.state.limits.stored_bytes = 100'000;
  const auto many = machine.put(mallorys_service("/many", 101));
  ASSERT_FALSE(many);
  EXPECT_EQ(many.error().message, "The services of 'mallory' would have 101 instances, and 100 are allowed");
  EXPECT_FALSE(machine.put(mallorys_service("/large", 20, 8000)));
  EXPECT_TRUE(machine.state.tasks.empty());
  ASSERT_TRUE(machine.put(mallorys_service("/one", 20, 1000)));
  EXPECT_FALSE(machine.put(mallorys_service("/two", 20, 3000))) << "both together";
  ASSERT_TRUE(machine.put(mallorys_service("/one", 5, 1000), true)) << "fewer in the place of more";
  auto victims = testing::service("/victims", 50);
  victims.task.owner = kVictim;
  EXPECT_TRUE(machine.put(victims));
}

TEST(Admission, JobsAreLimited) {
  testing::Scheduler scheduler;
  scheduler.machine.state.limits.stored_bytes = 10'000;
  auto job = testing::Scheduler::schedule("a", "R/2030-01-01T00:00:00Z/P1D");
  job.task.owner = kMallory;
  job.task.owner_name = "mallory";
  job.task.environment.edit()["FILL"] = std::string(5000, 'x');
  ASSERT_TRUE(scheduler.define(job));
  ASSERT_TRUE(scheduler.define(job)) << "the same again is no second one";
  job.name = "b";
  const auto refused = scheduler.define(job);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kExhausted);
}

TEST(Admission, AUserHasOnlySoManyFrameworksAndOldOnesAreForgotten) {
  Machine machine(0);
  machine.state.limits.frameworks = 3;
  FrameworkRecord record;
  record.owner = kMallory;
  record.owner_name = "mallory";
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(machine.on(event::FrameworkSubscribed{"f" + std::to_string(i), record}));
  const auto refused = machine.on(event::FrameworkSubscribed{"f3", record});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "'mallory' has 3 frameworks, and 3 are allowed");
  EXPECT_TRUE(machine.on(event::FrameworkSubscribed{"f2", record})) << "it is there already";
  record.owner = kVictim;
  EXPECT_TRUE(machine.on(event::FrameworkSubscribed{"v", record}));
  record.owner = kMallory;
  for (int i = 0; i < 20; ++i) {
    const auto id = "f" + std::to_string(i);
    if (i >= 3) {
      ASSERT_TRUE(machine.on(event::FrameworkSubscribed{id, record}, kNow + std::chrono::seconds(i)));
    }
    ASSERT_TRUE(machine.on(event::FrameworkTornDown{id}, kNow + std::chrono::seconds(i)));
  }
  EXPECT_LE(machine.state.frameworks.size(), 1U + 3U + 1U);
  EXPECT_TRUE(machine.state.frameworks.contains("f19"));
}

// In all, root included.

TEST(Admission, AllTasksTogetherAreLimited) {
  Limited machine;
  machine.state.limits.all_tasks = 5;
  ASSERT_TRUE(machine.submit(mallorys("m")));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(machine.submit(task("r" + std::to_string(i), 1)));
  const auto refused = machine.submit(task("r3", 1));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kExhausted);
  EXPECT_EQ(refused.error().message, "5 tasks wait or run, and 5 are allowed in all");
  EXPECT_TRUE(refused.error().hint.ends_with("drover serve --limit all-tasks=N")) << refused.error().hint;
  ASSERT_TRUE(machine.on(event::StopRequested{"r0"}));
  EXPECT_TRUE(machine.submit(task("r3", 1))) << "one waits no more";
}

TEST(Admission, AllDefinitionsTogetherAreLimited) {
  Limited machine;
  machine.state.limits.all_stored_bytes = 10'000;
  const auto large = [](const std::string& id) {
    auto result = task(id, 1);
    result.environment.edit()["FILL"] = std::string(3000, 'x');
    return result;
  };
  for (const auto* id : {"r0", "r1"}) ASSERT_TRUE(machine.submit(large(id)));
  const auto refused = machine.submit(large("r2"));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("and 9.8 KiB are allowed in all"), std::string::npos)
      << refused.error().message;
  ASSERT_TRUE(machine.on(event::StopRequested{"r0"}));
  EXPECT_TRUE(machine.submit(large("r2"))) << "what has ended makes room";
  EXPECT_FALSE(machine.state.tasks.contains("r0"));
}

TEST(Admission, OfAllTasksThatHaveEndedOnlySoManyAreRemembered) {
  Limited machine;
  machine.state.limits.all_ended_tasks = 16;
  ASSERT_TRUE(machine.submit(mallorys("m")));
  ASSERT_TRUE(machine.on(event::StopRequested{"m"}, kNow - std::chrono::hours(1)));
  for (int i = 0; i < 100; ++i) {
    const auto id = "r" + std::to_string(i);
    ASSERT_TRUE(machine.submit(task(id, 1))) << i;
    ASSERT_TRUE(machine.on(event::StopRequested{id}, kNow + std::chrono::seconds(i)));
    ASSERT_LE(machine.state.ended.size(), 17U);
  }
  EXPECT_FALSE(machine.state.tasks.contains("r0")) << "the oldest of whoever has most";
  EXPECT_TRUE(machine.state.tasks.contains("m"));
  EXPECT_TRUE(machine.state.tasks.contains("r99"));
  EXPECT_EQ(sum(machine.state.usages).ended, machine.state.ended.size());
}

TEST(Admission, AllAppsGroupsAndJobsTogetherAreLimited) {
  testing::Services machine(0);
  machine.state.limits.all_definitions = 3;
  machine.state.limits.all_tasks = 10;
  ASSERT_TRUE(machine.put(testing::service("/a", 2)));
  const auto many = machine.put(testing::service("/b", 9));
  ASSERT_FALSE(many);
  EXPECT_EQ(many.error().message, "All apps would have 11 instances, and 10 are allowed in all");
  ASSERT_TRUE(machine.on(event::ServicesChanged{.groups = {{"/g", GroupRecord{}}}}, machine.now));
  auto job = testing::Scheduler::schedule("job", "R/2030-01-01T00:00:00Z/P1D");
  ASSERT_TRUE(machine.on(event::ScheduleDefined{job}, machine.now));
  const auto refused = machine.put(testing::service("/b", 1));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "There would be 4 apps, groups and jobs, and 3 are allowed in all");
  ASSERT_TRUE(machine.on(event::ScheduleDefined{job}, machine.now)) << "the same again is no second one";
  job.name = "other";
  EXPECT_FALSE(machine.on(event::ScheduleDefined{job}, machine.now));
  machine.state.limits.all_definitions = 1;
  EXPECT_TRUE(machine.put(testing::service("/a", 1), true)) << "no more than there were";
}

TEST(Admission, AJobThatOverlapsFillsNoMoreThanThereIs) {
  testing::Scheduler scheduler;
  scheduler.machine.state.limits.all_tasks = 20;
  auto job = testing::Scheduler::schedule("often", "R/2023-11-14T22:14:00Z/PT1M");
  job.task.resources.gpus = {{1, {}}};  // there is one, and its run does not end
  job.concurrent = true;
  ASSERT_TRUE(scheduler.define(job));
  scheduler.go_to(kNow + std::chrono::hours(3));
  EXPECT_EQ(scheduler.machine.state.tasks.size(), 20U);
  const auto& history = scheduler.machine.state.schedules.at("often").history;
  ASSERT_FALSE(history.empty());
  EXPECT_NE(history.back().message.find("20 tasks wait or run, and 20 are allowed in all"), std::string::npos)
      << history.back().message;
}

TEST(Admission, AllFrameworksTogetherAreLimited) {
  Machine machine(0);
  machine.state.limits.all_frameworks = 3;
  FrameworkRecord roots;
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(machine.on(event::FrameworkSubscribed{"f" + std::to_string(i), roots}));
  const auto refused = machine.on(event::FrameworkSubscribed{"f3", roots});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "There are 3 frameworks, and 3 are allowed in all");
  for (int i = 0; i < 50; ++i) {
    const auto id = "f" + std::to_string(i);
    const auto at = kNow + std::chrono::seconds(i);
    if (i >= 3) {
      ASSERT_TRUE(machine.on(event::FrameworkSubscribed{id, roots}, at));
    }
    ASSERT_TRUE(machine.on(event::FrameworkTornDown{id}, at));
    ASSERT_LE(machine.state.frameworks.size(), 6U) << "a scheduler that fails again and again";
  }
  EXPECT_TRUE(machine.state.frameworks.contains("f49"));
}

}  // namespace
}  // namespace drover::control

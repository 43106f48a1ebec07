#include "control/deadlines.h"

#include <gtest/gtest.h>

#include "control/controller.h"
#include "control/testing/machine.h"

namespace drover::control {
namespace {

TEST(Deadlines, OfAnOutcomeAreThoseOfWhatItChanged) {
  Outcome outcome;
  EXPECT_EQ(next_deadline(outcome), std::nullopt);
  ScheduleRecord record;
  record.due = testing::kNow + std::chrono::hours(2);
  outcome.schedules["job"] = record;
  EXPECT_EQ(next_deadline(outcome), testing::kNow + std::chrono::hours(2));
  ServiceRecord service;
  service.not_before = testing::kNow + std::chrono::hours(1);
  outcome.services["/web"] = service;
  EXPECT_EQ(next_deadline(outcome), testing::kNow + std::chrono::hours(1));
  TaskRecord task;
  task.task = testing::task("t", 0);
  task.task.timeout = std::chrono::minutes(5);
  task.started_at = testing::kNow;
  task.state = TaskState::kRunning;
  outcome.changed.push_back(task);
  EXPECT_EQ(next_deadline(outcome), testing::kNow + std::chrono::minutes(5));
}

}  // namespace
}  // namespace drover::control

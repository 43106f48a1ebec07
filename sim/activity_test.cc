#include "sim/activity.h"

#include <gmock/gmock.h>

namespace drover::sim {
namespace {

constexpr std::uint64_t kMebibyte = 1 << 20;

std::vector<unsigned int> pids_of(const Activity& activity) {
  std::vector<unsigned int> pids;
  for (const auto& process : activity.processes) pids.push_back(process.pid);
  return pids;
}

TEST(Activity, ProcessesOfTheFaultFileAndThoseThatLiveAreOneList) {
  GpuFaults faults;
  faults.processes = {{.pid = 7, .memory_mib = 100}, {.pid = 8, .memory_mib = 50, .gpu_instance = 3}};
  const auto activity = activity_of(faults, {{.pid = 4711, .bytes = 300 * kMebibyte, .busy = 0.25}});
  EXPECT_THAT(pids_of(activity), testing::ElementsAre(7, 8, 4711));
  EXPECT_EQ(activity.used_bytes(), 450 * kMebibyte);
  EXPECT_EQ(activity.used_bytes(3), 50 * kMebibyte);
}

TEST(Activity, ProcessesThatAreNotSeenCountAndAreNotListed) {
  const auto activity = activity_of({}, {{.pid = 0, .bytes = 10, .busy = 0.5}, {.pid = 9, .bytes = 20}});
  EXPECT_THAT(pids_of(activity), testing::ElementsAre(9));
  EXPECT_EQ(activity.used_bytes(), 30U);
  EXPECT_EQ(activity.utilization.sm, 50U);
}

TEST(Activity, AGpuIsAsBusyAsWhatLivesOnIt) {
  const auto busy = [](std::vector<LiveUse> live) { return activity_of({}, live).utilization.sm; };
  EXPECT_EQ(busy({}), 0U);
  EXPECT_EQ(busy({{.pid = 1, .busy = 0.5}, {.pid = 2, .busy = 0.25}}), 75U);
  EXPECT_EQ(busy({{.pid = 1, .busy = 0.001}}), 1U);
  EXPECT_EQ(busy({{.pid = 1, .busy = 1}, {.pid = 2, .busy = 1}}), 100U);
}

TEST(Activity, WhatTheFaultFileSaysOfAGpuWins) {
  GpuFaults faults;
  faults.utilization = Utilization{.sm = 60, .memory = 40};
  faults.processes = {{.pid = 7}, {.pid = 8}, {.pid = 9, .utilization = Utilization{.sm = 5}}};
  const auto activity = activity_of(faults, {{.pid = 4711, .busy = 0.9}});
  EXPECT_EQ(activity.utilization.sm, 60U);
  EXPECT_EQ(activity.utilization.memory, 40U);
  std::vector<unsigned int> each;
  for (const auto& process : activity.processes) each.push_back(process.utilization.sm);
  EXPECT_THAT(each, testing::ElementsAre(20, 20, 5, 90));
}

}  // namespace
}  // namespace drover::sim

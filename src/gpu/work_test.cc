#include "gpu/work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drover::gpu {
namespace {

using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

GpuUsage usage(Reading percent, std::vector<ProcessUsage> processes = {}) {
  GpuUsage usage;
  usage.answers = true;
  usage.gpu_percent = percent;
  usage.processes = std::move(processes);
  return usage;
}

ProcessUsage process(std::uint32_t pid, Reading sm) {
  ProcessUsage process;
  process.pid = pid;
  process.sm_percent = sm;
  return process;
}

/// Processes 1 and 2 are a's and b's.
std::string owner_of(std::uint32_t pid) {
  return pid == 1 ? "a" : pid == 2 ? "b" : "";
}

std::set<std::string> who(const GpuUsage& usage, const std::set<std::string>& holders) {
  return who_works({{"GPU-1", usage}}, {{"GPU-1", holders}}, owner_of);
}

TEST(WhoWorks, WhoHasAGpuAloneIsJudgedByIt) {
  EXPECT_THAT(who(usage(0), {"a"}), IsEmpty());
  EXPECT_THAT(who(usage(1), {"a"}), UnorderedElementsAre("a"));
  EXPECT_THAT(who(usage(0, {process(1, 3)}), {"a"}), UnorderedElementsAre("a"));
}

TEST(WhoWorks, WhoSharesOneIsJudgedByItsProcesses) {
  EXPECT_THAT(who(usage(50, {process(1, 0), process(2, 50)}), {"a", "b"}), UnorderedElementsAre("b"));
  EXPECT_THAT(who(usage(0, {process(3, 0)}), {"a", "b"}), IsEmpty());
}

TEST(WhoWorks, WhereNothingIsToldEverybodyMay) {
  EXPECT_THAT(who({}, {"a", "b"}), UnorderedElementsAre("a", "b")) << "it does not answer";
  EXPECT_THAT(who(usage({}), {"a"}), UnorderedElementsAre("a"));
  EXPECT_THAT(who(usage(0, {process(1, {})}), {"a", "b"}), UnorderedElementsAre("a", "b"));
  EXPECT_THAT(who(usage(50, {process(1, 0), process(3, 50)}), {"a", "b"}), UnorderedElementsAre("a", "b"));
  EXPECT_THAT(who(usage(50), {"a", "b"}), UnorderedElementsAre("a", "b")) << "a process that is not told of";
  EXPECT_THAT(who_works({{"GPU-1", usage(0)}}, {{"GPU-1", {"a", "b"}}}, {}), UnorderedElementsAre("a", "b"));
  EXPECT_THAT(who_works({{"GPU-1", usage(0)}}, {{"GPU-1", {"a"}}}, {}), IsEmpty());
  EXPECT_THAT(who_works({}, {{"GPU-1", {"a"}}}, owner_of), UnorderedElementsAre("a")) << "it is gone";
}

}  // namespace
}  // namespace drover::gpu

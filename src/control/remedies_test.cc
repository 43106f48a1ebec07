#include "control/remedies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <regex>

#include "base/units.h"
#include "control/preview.h"
#include "control/testing/machine.h"

namespace drover::control {
namespace {

using namespace testing;  // NOLINT: the machine
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> told(const State& state, const std::vector<workload::Task>& tasks, TimePoint now) {
  std::vector<std::string> texts;
  for (const auto& remedy : remedies(state, tasks, now)) texts.push_back(remedy.text);
  return texts;
}

TEST(Remedies, SayWhatTheDefinitionWouldSayOtherwise) {
  Machine machine(4);
  ASSERT_TRUE(machine.on(event::Submitted{{task("holder", 1)}}));
  auto asked = task("new", 4);
  EXPECT_EQ(remedies(machine.state, {asked}, kNow).front().changes, (nlohmann::json{{"gpus", 3}}));
  asked = task("new", 2);
  asked.resources.interconnect = {9, gpu::PcieLevel::kUnknown};
  const auto found = remedies(machine.state, {asked}, kNow);
  ASSERT_FALSE(found.empty());
  EXPECT_TRUE(found.front().changes.contains("interconnect")) << found.front().changes;
  EXPECT_EQ(found.front().changes.size(), 1);
  EXPECT_EQ(remedies(machine.state, gang("gang", 4, 1), kNow),
            (std::vector<Remedy>{{"make it a gang of 3"}}));
}

TEST(Remedies, AreWhatWouldStartAtOnce) {
  Machine machine(4);
  ASSERT_TRUE(machine.on(event::Submitted{{task("holder", 1)}}));
  EXPECT_THAT(told(machine.state, {task("new", 4)}, kNow), ElementsAre("ask for 3 GPUs"));
  ASSERT_TRUE(machine.on(event::Submitted{gang("gang", 4, 1)}));
  EXPECT_THAT(told(machine.state, gang("gang", 4, 1), kNow), ElementsAre("make it a gang of 3"));
}

TEST(Remedies, FewerGpusBringLessOfWhatGoesWithThem) {
  Machine machine(4);
  const auto given = [&](workload::Task one) {
    std::vector tasks = {std::move(one)};
    give_gpu_shares(tasks, {{true, true}}, machine.state.machine(), {}, {});
    return tasks.front();
  };
  ASSERT_TRUE(machine.submit(given(task("holder", 1))));
  EXPECT_THAT(told(machine.state, {given(task("new", 4))}, kNow), ElementsAre("ask for 3 GPUs"));
  auto said = given(task("new", 4));
  said.resources.milli_cpus = 63'000;
  EXPECT_THAT(told(machine.state, {said}, kNow), ElementsAre("ask for 3 GPUs and 48 CPUs"));
}

TEST(Remedies, ForATaskThatWaitsAreToldAsIfItWereAskedForAnew) {
  Machine machine(2);
  ASSERT_TRUE(machine.on(event::Submitted{{task("holder", 1)}}));
  ASSERT_TRUE(machine.on(event::Submitted{{task("waiting", 2)}}));
  const auto before = machine.state.queue;
  EXPECT_THAT(told(machine.state, {task("waiting", 2)}, kNow), ElementsAre("ask for 1 GPU"));
  EXPECT_EQ(machine.state.queue, before);
  // Behind another that waits for the same, to ask for less does not help.
  ASSERT_TRUE(machine.on(event::Submitted{{task("second", 2)}}));
  EXPECT_THAT(told(machine.state, {task("second", 2)}, kNow), ElementsAre("wait for 1 GPU of here"));
}

TEST(Remedies, KeepToLimitsAndQuotas) {
  Machine machine(8);
  placement::Rules rules;
  auto& quota = rules.quotas[{placement::SubjectKind::kUser, "ann"}];
  quota.subject = {placement::SubjectKind::kUser, "ann"};
  quota.limit.gpu_milli = 4000;
  ASSERT_TRUE(machine.set(rules));
  ASSERT_TRUE(machine.submit(task_of("ann", 7, "one", 1)));
  EXPECT_THAT(told(machine.state, {task_of("ann", 7, "new", 4)}, kNow), ElementsAre("ask for 3 GPUs"));
}

TEST(Remedies, AreToWaitOrNothingWhenNothingElseHelps) {
  Machine machine(1);
  ASSERT_TRUE(machine.on(event::Submitted{{task("holder", 1)}}));
  EXPECT_THAT(told(machine.state, {task("new", 1)}, kNow), ElementsAre("wait for 1 GPU of here"));
  EXPECT_THAT(told(machine.state, {}, kNow), IsEmpty());
}

/// Does what the words say, as somebody who reads them would.
std::vector<workload::Task> heed(const std::string& remedy, std::vector<workload::Task> tasks) {
  static const std::regex kPart(R"((a share of )?([0-9.]+) ?(GPUs?|CPUs?|[KMGT]iB of memory|[KMGT]iB)?)");
  std::smatch match;
  if (std::regex_match(remedy, match, std::regex("make it a gang of ([0-9]+)"))) {
    tasks.resize(std::stoul(match[1]));
    for (auto& task : tasks) task.gang->size = static_cast<int>(tasks.size());
    return tasks;
  }
  RC_ASSERT(remedy.starts_with("ask for "));
  for (std::sregex_iterator part(remedy.begin(), remedy.end(), kPart), end; part != end; ++part)
    for (auto& task : tasks) {
      const std::string number = (*part)[2];
      const std::string unit = (*part)[3];
      if ((*part)[1].matched)
        task.resources.share.milli = static_cast<int>(std::lround(std::stod(number) * 1000));
      else if (unit.starts_with("GPU"))
        task.resources.gpus.front().count = std::stoi(number);
      else if (unit.starts_with("CPU"))
        task.resources.milli_cpus = parse_milli_cpus(number).value();
      else
        task.resources.memory_bytes = parse_bytes(number + unit.substr(0, 3)).value();
    }
  return tasks;
}

workload::Task some_task(const std::string& id) {
  auto result = task(id, *rc::gen::inRange(0, 6));
  // Never what goes with GPUs anyway, which a remedy takes for unsaid.
  result.resources.milli_cpus = *rc::gen::inRange(1, 40) * 1000 + 7;
  result.resources.memory_bytes = *rc::gen::inRange<std::uint64_t>(1, 600) << 30;
  if (result.resources.gpu_count() == 1) result.resources.share.milli = *rc::gen::element(1000, 500, 330);
  result.queue = *rc::gen::element<std::string>("default", "small");
  return result;
}

RC_GTEST_PROP(Remedies, PropertyWhoHeedsOneStartsAtOnce, ()) {
  Machine machine(6);
  placement::Rules rules;
  rules.queues["small"] = {.path = "small", .limit = {.gpu_milli = 3000}};
  RC_ASSERT(machine.set(rules).has_value());
  for (int i = *rc::gen::inRange(3, 9); i > 0; --i) (void)machine.submit(some_task("t" + std::to_string(i)));
  std::vector<workload::Task> asked = {some_task("new")};
  if (const int size = *rc::gen::inRange(1, 4); size > 1) {
    asked = gang("new", size, 1);
    const auto like = some_task("like");
    for (auto& member : asked) {
      member.resources = like.resources;
      member.queue = like.queue;
    }
  }
  const auto before = preview(machine.state, asked, kNow);
  if (!before || !before->decisions.empty()) return;
  const auto found = told(machine.state, asked, kNow);
  for (const auto& remedy : found) {
    if (remedy.starts_with("wait for ")) continue;
    const auto after = preview(machine.state, heed(remedy, asked), kNow);
    RC_ASSERT(after.has_value());
    RC_ASSERT(!after->decisions.empty());
  }
  RC_CLASSIFY(!found.empty(), "something helps");
}

}  // namespace
}  // namespace drover::control

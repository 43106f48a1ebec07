#include "control/resizing.h"

#include <gmock/gmock.h>

#include "control/testing/machine.h"

namespace drover::control {
namespace {

using namespace testing;  // NOLINT: the machine
using placement::Grant;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using workload::Share;

constexpr std::uint64_t kGib = 1ULL << 30;

Share gib(std::uint64_t count) {
  return {1000, count * kGib};
}

class ResizingTest : public ::testing::Test {
 protected:
  static workload::Task sharing(const std::string& id, Share share, int gpus = 1) {
    auto result = task(id, gpus);
    result.resources.share = share;
    return result;
  }
  void run(workload::Task task, const std::string& tier = "guarded") {
    const auto id = task.id;
    ASSERT_TRUE(machine_.submit(std::move(task)));
    ASSERT_EQ(machine_.at(id), TaskState::kStarting);
    ASSERT_TRUE(machine_.on(event::Started{.id = id, .at = kNow, .tier = tier}));
  }
  Status resize(const std::string& id, Share share) { return machine_.on(event::ResizeRequested{id, share}); }
  /// Refused, with these words, and nothing has changed.
  void expect_refused(const std::string& id, Share share, ErrorKind kind, const std::string& words) {
    const auto before = machine_.record(id);
    const auto refused = resize(id, share);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, kind) << to_string(refused.error());
    EXPECT_THAT(to_string(refused.error()), HasSubstr(words));
    EXPECT_EQ(machine_.record(id), before);
  }
  /// Of a task that runs, changed so.
  void expect_refused_of(const std::function<void(workload::Task&)>& change, const std::string& words) {
    Outcome outcome;
    outcome.changed = {{.task = sharing("special", gib(4)), .state = TaskState::kRunning}};
    outcome.changed[0].gpus = {{"GPU-0", 250, 4 * kGib}};
    change(outcome.changed[0].task);
    auto state = restore({}, node_with(1));
    apply(state, outcome);
    const auto refused = decide(state, event::ResizeRequested{"special", gib(5)}, kNow);
    ASSERT_FALSE(refused);
    EXPECT_THAT(to_string(refused.error()), HasSubstr(words));
  }
  Grant grant(const std::string& id) { return machine_.record(id).gpus.at(0); }

  Machine machine_{1};
};

TEST_F(ResizingTest, AShareGrowsIntoWhatIsFreeAndNoFurther) {
  run(sharing("a", gib(4)));
  run(sharing("b", gib(4)));
  ASSERT_TRUE(resize("a", gib(12)));
  EXPECT_EQ(grant("a"), (Grant{"GPU-0", 750, 12 * kGib}));
  EXPECT_EQ(machine_.record("a").task.resources.share, gib(12));
  EXPECT_THAT(machine_.asked<action::Resize>(), ElementsAre("a"));
  EXPECT_EQ(machine_.state.cluster.free("here").gpu_milli, 0);
  expect_refused("b", gib(5), ErrorKind::kConflict, "Of GPU 0, 5 GiB are asked for, and 4 GiB are free");
  expect_refused("b", {300, 0}, ErrorKind::kConflict, "0.3 are asked for, and 0.25 are free");
  machine_.restart();
  EXPECT_EQ(grant("a"), (Grant{"GPU-0", 750, 12 * kGib}));
  EXPECT_EQ(machine_.state.cluster.free("here").gpu_milli, 0);
}

TEST_F(ResizingTest, TheSameShareIsNoNews) {
  run(sharing("a", gib(4)));
  auto outcome = decide(machine_.state, event::ResizeRequested{"a", gib(4)}, kNow);
  ASSERT_TRUE(outcome);
  EXPECT_TRUE(outcome->changed.empty());
  EXPECT_TRUE(outcome->notices.empty());
  outcome = decide(machine_.state, event::ResizeRequested{"a", {500, 0}}, kNow);
  ASSERT_TRUE(outcome);
  ASSERT_EQ(outcome->notices.size(), 1U);
  const auto& noted = std::get<notice::Noted>(outcome->notices[0]);
  EXPECT_EQ(noted.kind, "share_resized");
  EXPECT_EQ(noted.message, "it has 8 GiB (0.5) of GPU 0 instead of 4 GiB (0.25)");
}

TEST_F(ResizingTest, WhatIsGivenBackGoesToWhoWaits) {
  run(sharing("a", gib(12)));
  ASSERT_TRUE(machine_.submit(sharing("waits", gib(8))));
  EXPECT_EQ(machine_.at("waits"), TaskState::kQueued);
  ASSERT_TRUE(resize("a", gib(9)));
  EXPECT_EQ(machine_.at("waits"), TaskState::kQueued);
  EXPECT_THAT(machine_.reasons("waits"), ElementsAre(HasSubstr("7 GiB")));
  ASSERT_TRUE(resize("a", gib(8)));
  EXPECT_EQ(machine_.at("waits"), TaskState::kStarting);
}

TEST_F(ResizingTest, WhatItHadIsKnownUntilItHasThatAgainOrStartsAfresh) {
  run(sharing("a", gib(12)));
  ASSERT_TRUE(resize("a", gib(4)));
  EXPECT_EQ(machine_.record("a").shrunk_from, 12 * kGib);
  ASSERT_TRUE(resize("a", gib(8)));
  ASSERT_TRUE(resize("a", gib(6)));
  EXPECT_EQ(machine_.record("a").shrunk_from, 12 * kGib);
  EXPECT_EQ(decode_record(encode(machine_.record("a"))).value(), machine_.record("a"));
  ASSERT_TRUE(resize("a", gib(12)));
  EXPECT_EQ(machine_.record("a").shrunk_from, 0U);
  ASSERT_TRUE(resize("a", gib(4)));
  auto urgent_task = urgent(task("urgent", 1), 10);
  ASSERT_TRUE(machine_.submit(urgent_task));
  ASSERT_TRUE(machine_.on(event::Ended{"a", exited(0, true)}));
  ASSERT_EQ(machine_.at("a"), TaskState::kQueued);
  EXPECT_EQ(machine_.record("a").shrunk_from, 0U);
  EXPECT_EQ(machine_.record("a").task.resources.share, gib(4)) << "it starts again with the new share";
}

TEST_F(ResizingTest, LessGoesAlsoWhereLimitsAreLowerAndMoreDoesNot) {
  placement::Rules rules;
  rules.queues["default"] = {"default", {600, {}, {}}, {}, 1, {}};
  run(sharing("a", {500, 0}));
  ASSERT_TRUE(machine_.set(rules));
  expect_refused("a", {700, 0}, ErrorKind::kConflict,
                 "The queue 'default' has a limit of 0.6 GPUs, of which 0.5 are in use, and 0.7 would be");
  EXPECT_TRUE(resize("a", {600, 0}));
  rules.queues["default"].limit.gpu_milli = 100;
  const placement::Subject root{placement::SubjectKind::kUser, "root"};
  rules.quotas[root] = {root, {100, {}, {}}, {}};
  ASSERT_TRUE(machine_.set(rules));
  EXPECT_TRUE(resize("a", {500, 0}));
  rules.queues.clear();
  ASSERT_TRUE(machine_.set(rules));
  expect_refused("a", {501, 0}, ErrorKind::kConflict, "'root' has a limit of 0.1 GPUs");
}

TEST_F(ResizingTest, SeveralGpusChangeTogetherOrNotAtAll) {
  machine_.state = restore({}, node_with(2));
  run(sharing("a", gib(4), 2));
  run(sharing("b", gib(8)));
  expect_refused("a", gib(9), ErrorKind::kConflict, "8 GiB are free");
  ASSERT_TRUE(resize("a", gib(8)));
  EXPECT_THAT(machine_.record("a").gpus,
              ElementsAre(Grant{"GPU-0", 500, 8 * kGib}, Grant{"GPU-1", 500, 8 * kGib}));
}

TEST_F(ResizingTest, WhatCannotBeAShareIsRefused) {
  run(sharing("a", gib(4)));
  expect_refused("a", gib(17), ErrorKind::kInvalid, "GPU 0 has 16 GiB, and 17 GiB of it are asked for");
  expect_refused("a", gib(16), ErrorKind::kInvalid, "less than the whole GPU 0");
  expect_refused("a", {1000, 0}, ErrorKind::kInvalid, "less than a whole GPU");
  for (const int milli : {0, -1, 1001}) expect_refused("a", {milli, 0}, ErrorKind::kInvalid, "/gpu_share");
  expect_refused("a", {1000, std::numeric_limits<std::uint64_t>::max()}, ErrorKind::kInvalid, "");
  EXPECT_EQ(resize("nobody", gib(4)).error().kind, ErrorKind::kNotFound);
}

TEST_F(ResizingTest, HowItIsHeldToItsShareStaysTheSame) {
  run(sharing("guarded", gib(2)));
  expect_refused("guarded", {1000, kGib - 1}, ErrorKind::kInvalid, "Nothing is held to less than 1 GiB");
  run(sharing("counted", gib(2)), "");
  EXPECT_TRUE(resize("counted", {1000, kGib / 2}));
  EXPECT_TRUE(resize("counted", gib(3)));
  EXPECT_EQ(machine_.record("counted").tier, "");
}

TEST_F(ResizingTest, WhoHasNoShareOfHisOwnKeepsWhatHeHas) {
  machine_.state = restore({}, node_with(4));
  run(task("none", 0), "");
  run(task("whole", 1), "");
  auto grouped = sharing("grouped", gib(4));
  grouped.resources.group = "team";
  run(grouped, "");
  auto member = sharing("member-0", gib(4));
  member.gang = workload::GangMembership{"member", 0, 1, workload::Arrangement::kPack};
  run(member);
  for (const auto& [id, words] : {std::pair{"none", "no GPU"}, std::pair{"whole", "whole GPUs"},
                                  std::pair{"grouped", "group 'team'"}, std::pair{"member-0", "gang"}})
    expect_refused(id, gib(5), ErrorKind::kConflict, words);
  using workload::OriginKind;
  expect_refused_of([](auto& one) { one.origin = {OriginKind::kService, "x", "", ""}; }, "of the app 'x'");
  expect_refused_of([](auto& one) { one.origin = {OriginKind::kSchedule, "x", "", ""}; }, "of the job 'x'");
  expect_refused_of([](auto& one) { one.origin = {OriginKind::kFramework, "x", "", ""}; }, "framework's");
  expect_refused_of([](auto& one) { one.resources.part = "1g.10gb"; }, "hardware's");
  machine_.state.placed_by_others = true;
  EXPECT_THAT(to_string(resize("whole", gib(5)).error()), HasSubstr("cluster"));
}

TEST_F(ResizingTest, OnlyWhoRunsIsGivenAnotherShare) {
  ASSERT_TRUE(machine_.submit(sharing("a", gib(10))));
  expect_refused("a", gib(4), ErrorKind::kConflict, "is about to start");
  ASSERT_TRUE(machine_.submit(sharing("b", gib(10))));
  expect_refused("b", gib(4), ErrorKind::kConflict, "waits, and has no share yet");
  ASSERT_TRUE(machine_.on(event::Started{.id = "a", .at = kNow}));
  ASSERT_TRUE(machine_.on(event::StopRequested{"a"}));
  expect_refused("a", gib(4), ErrorKind::kConflict, "is being stopped");
  ASSERT_TRUE(machine_.on(event::Ended{"a", exited(0)}));
  expect_refused("a", gib(4), ErrorKind::kConflict, "has ended");
}

TEST_F(ResizingTest, AGpuThatHasGoneKeepsItsShare) {
  run(sharing("a", gib(4)));
  auto node = node_with(1);
  node.inventory.devices.clear();
  node.inventory.links.clear();
  ASSERT_TRUE(machine_.on(event::NodeChanged{node}));
  expect_refused("a", gib(2), ErrorKind::kUnavailable, "not there now");
}

}  // namespace
}  // namespace drover::control

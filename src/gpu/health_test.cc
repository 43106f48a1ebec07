#include "gpu/health.h"

#include <gmock/gmock.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "base/property_steps.h"

namespace drover::gpu {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint64_t kLostCode = 15;  // NVML_ERROR_GPU_IS_LOST
const std::string kGpu = "GPU-a";
const std::string kOther = "GPU-b";

/// Plays observations at times of its own.
class HealthTest : public testing::Test {
 protected:
  HealthTest() {
    health_.know(kGpu);
    health_.know(kOther);
  }

  std::vector<HealthChange> apply(const Observation& observation) { return health_.apply(observation, now_); }
  std::vector<HealthChange> xid(std::uint64_t number, MigInstance instance = {}) {
    return apply(XidSeen{kGpu, number, instance});
  }
  static GpuPolled answer() { return {.uuid = kGpu}; }
  static GpuPolled lost() { return {.uuid = kGpu, .answer = Answer::kLost, .code = kLostCode}; }
  static GpuPolled asking(RecoveryAction action) { return {.uuid = kGpu, .action = action}; }
  static GpuPolled counting(std::uint64_t errors) { return {.uuid = kGpu, .uncorrected = errors}; }

  /// How long polls like this one go on until the GPU is healthy; at most a week.
  std::chrono::milliseconds until_fit(const GpuPolled& poll) {
    const auto start = now_;
    while (now_ - start < 24h * 7) {
      apply(poll);
      if (health_.healthy(kGpu)) return now_ - start;
      now_ += 1s;
    }
    return -1ms;
  }
  std::vector<std::string> texts() const {
    std::vector<std::string> texts;
    for (const auto& reason : health_.reasons(kGpu)) texts.push_back(to_string(reason));
    return texts;
  }

  TimePoint now_{1'000'000s};
  Health health_{XidPolicy()};
};

TEST_F(HealthTest, AnXidTakesOutItsGpuOnly) {
  const auto changes = xid(79);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].uuid, kGpu);
  EXPECT_TRUE(changes[0].was_healthy);
  EXPECT_FALSE(changes[0].healthy);
  EXPECT_THAT(changes[0].opened, ElementsAre(Reason{ReasonKind::kXid, 79, {}, true, now_}));
  EXPECT_THAT(texts(), ElementsAre("XID 79: it has fallen off the bus"));
  EXPECT_FALSE(health_.healthy(kGpu));
  EXPECT_TRUE(health_.healthy(kOther));
  EXPECT_THAT(xid(79), IsEmpty()) << "told once";
}

TEST_F(HealthTest, AnXidOfAProgramIsToldAndTakesNothingOut) {
  const auto changes = xid(31);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_TRUE(changes[0].healthy);
  EXPECT_FALSE(changes[0].opened.at(0).takes_out);
  EXPECT_TRUE(health_.healthy(kGpu));
  apply(answer());
  now_ += 5min;
  EXPECT_EQ(apply(answer()).at(0).closed.size(), 1U);
}

TEST_F(HealthTest, WhatNeedsNoResetComesBackWhenItIsQuiet) {
  xid(94);
  EXPECT_EQ(until_fit(answer()), 5min);
}

TEST_F(HealthTest, ARepeatedErrorStartsTheTimeAnew) {
  xid(94);
  apply(answer());
  now_ += 4min;
  xid(94);
  EXPECT_EQ(until_fit(answer()), 5min);
}

TEST_F(HealthTest, WhatNeedsAResetWaitsLongerWhenNothingTells) {
  xid(119);
  EXPECT_EQ(until_fit(answer()), 1h);
}

TEST_F(HealthTest, TheDriversWordEndsAnXid) {
  xid(119);
  for (int i = 0; i < 3600 * 30; ++i, now_ += 1s) apply(asking(RecoveryAction::kReset));
  EXPECT_FALSE(health_.healthy(kGpu)) << "longer than any quiet time";
  EXPECT_THAT(texts(), ElementsAre("XID 119: its system processor does not answer",
                                   "the driver asks for a reset of it"));
  EXPECT_EQ(health_.why_unhealthy(kGpu),
            "XID 119: its system processor does not answer; the driver asks for a reset of it");
  xid(31);
  EXPECT_EQ(until_fit(asking(RecoveryAction::kNone)), 30s);
  EXPECT_EQ(health_.why_unhealthy(kGpu), "");
}

TEST_F(HealthTest, AnActionForTheFabricTakesNothingOut) {
  apply(asking(RecoveryAction::kRecoverImex));
  EXPECT_TRUE(health_.healthy(kGpu));
  EXPECT_THAT(texts(), ElementsAre("the driver asks to recover the memory fabric"));
  apply(asking(static_cast<RecoveryAction>(200)));
  EXPECT_FALSE(health_.healthy(kGpu)) << "what is not known is taken for the worst";
}

TEST_F(HealthTest, ALostGpuThatAnswersAgainWasReset) {
  xid(79);
  apply(lost());
  now_ += 1h * 30;
  apply(lost());
  EXPECT_EQ(health_.reasons(kGpu).size(), 2U);
  EXPECT_EQ(until_fit(answer()), 30s);
}

TEST_F(HealthTest, AFlappingGpuDoesNotFlap) {
  apply(lost());
  for (int i = 0; i < 100; ++i) {
    now_ += 29s;
    apply(answer());
    now_ += 1s;
    apply(lost());
    EXPECT_FALSE(health_.healthy(kGpu));
  }
}

TEST_F(HealthTest, EveryFailureSoonAfterDoublesTheTime) {
  std::vector<std::chrono::milliseconds> waits;
  for (int i = 0; i < 12; ++i) {
    xid(94);
    waits.push_back(until_fit(answer()));
    now_ += 1min;
  }
  EXPECT_EQ(waits[0], 5min);
  EXPECT_EQ(waits[1], 10min);
  EXPECT_EQ(waits[4], 80min);
  EXPECT_EQ(waits[11], 24h);
  now_ += 25h;
  xid(94);
  EXPECT_EQ(until_fit(answer()), 5min) << "a day without is a new start";
}

TEST_F(HealthTest, NewEccErrorsTakeItOutAndOldOnesDoNot) {
  apply(counting(7));
  EXPECT_TRUE(health_.healthy(kGpu));
  apply(counting(9));
  EXPECT_FALSE(health_.healthy(kGpu));
  EXPECT_THAT(texts(), ElementsAre("9 memory errors that could not be corrected"));
  EXPECT_EQ(until_fit(counting(9)), 5min);
}

TEST_F(HealthTest, ACardThatGoesOnCountingErrorsIsNoNewsEachTime) {
  apply(counting(7));
  apply(counting(9));
  const auto why = health_.why_unhealthy(kGpu);
  for (std::uint64_t errors = 10; errors < 20; ++errors) {
    now_ += 5s;
    EXPECT_THAT(apply(counting(errors)), IsEmpty());
    EXPECT_EQ(health_.why_unhealthy(kGpu), why);
  }
  EXPECT_EQ(until_fit(counting(19)), 5min) << "from the last of them on";
}

TEST_F(HealthTest, CountersThatGoBackMeanAReset) {
  apply(counting(0));
  xid(95);
  apply(counting(3));
  now_ += 10min;
  EXPECT_EQ(until_fit(counting(0)), 30s);
}

TEST_F(HealthTest, ADriverThatWasLoadedAgainMeansAReset) {
  xid(119);
  apply(answer());
  now_ += 10min;
  apply(DriverReloaded{});
  EXPECT_EQ(until_fit(answer()), 30s);
}

TEST_F(HealthTest, BadMemoryIsToldUntilItIsReplaced) {
  apply(GpuPolled{.uuid = kGpu, .pages_pending = true, .rows_pending = true, .rows_failed = true});
  EXPECT_THAT(texts(), ElementsAre("bad memory pages wait for the driver to be loaded again",
                                   "bad memory rows wait for a reset", "bad memory rows cannot be replaced"));
  EXPECT_EQ(until_fit(GpuPolled{.uuid = kGpu, .pages_pending = true}), -1ms);
  EXPECT_EQ(until_fit(GpuPolled{.uuid = kGpu, .rows_pending = true}), 30s)
      << "NVIDIA lets new work start on it";
}

TEST_F(HealthTest, ASilentGpuIsOutUntilItAnswersForAWhile) {
  xid(79);
  apply(GpuPolled{.uuid = kGpu, .answer = Answer::kSilent});
  EXPECT_THAT(texts(), ElementsAre("XID 79: it has fallen off the bus", "it does not answer"));
  now_ += 2h;
  EXPECT_EQ(until_fit(answer()), 1h) << "silence is no reset";
}

TEST_F(HealthTest, WhatNobodyCanAttributeIsToldAtAllAndTakesNoneOut) {
  const auto changes = apply(XidSeen{"", 79, {}});
  EXPECT_EQ(changes.size(), 2U);
  EXPECT_TRUE(health_.healthy(kGpu));
  EXPECT_TRUE(health_.healthy(kOther));
}

TEST_F(HealthTest, AnInstancesTroubleIsItsOwn) {
  xid(94, {3, 0});
  EXPECT_FALSE(health_.healthy(kGpu)) << "as a whole";
  EXPECT_FALSE(health_.healthy(kGpu, {3, 0}));
  EXPECT_TRUE(health_.healthy(kGpu, {3, 1}));
  EXPECT_TRUE(health_.healthy(kGpu, {5, 0}));
  EXPECT_THAT(
      texts(),
      ElementsAre("XID 94: a memory error that hit only one program, in GPU instance 3, compute instance 0"));
  xid(95, {5, std::nullopt});
  EXPECT_FALSE(health_.healthy(kGpu, {5, 1}));
  xid(79);
  EXPECT_FALSE(health_.healthy(kGpu, {3, 1})) << "an XID of the whole GPU concerns every instance";
}

TEST_F(HealthTest, AnUnmonitoredGpuIsToldOnceAndStays) {
  EXPECT_EQ(apply(MonitoringSeen{kGpu, false}).size(), 1U);
  EXPECT_THAT(apply(MonitoringSeen{kGpu, false}), IsEmpty());
  EXPECT_TRUE(health_.healthy(kGpu));
  now_ += 100h;
  EXPECT_THAT(apply(answer()), IsEmpty());
  EXPECT_EQ(apply(MonitoringSeen{kGpu, true}).at(0).closed.size(), 1U);
}

TEST_F(HealthTest, WithAllChecksOffOnlyWatchedXidsTakeAGpuOut) {
  health_ = Health(XidPolicy::parse("all", "48").value());
  apply(lost());
  xid(79);
  EXPECT_TRUE(health_.healthy(kGpu));
  EXPECT_EQ(health_.reasons(kGpu).size(), 2U);
  xid(48);
  EXPECT_FALSE(health_.healthy(kGpu));
}

// --- Properties over random histories ---

struct Step {
  Observation observation;
  std::chrono::milliseconds after{};
};

GpuPolled random_poll(const std::string& uuid) {
  GpuPolled poll{.uuid = uuid};
  poll.answer =
      *rc::gen::weightedElement<Answer>({{8, Answer::kAnswers}, {1, Answer::kLost}, {1, Answer::kSilent}});
  if (*rc::gen::inRange(0, 2) == 0) poll.uncorrected = *rc::gen::inRange<std::uint64_t>(0, 3);
  poll.pages_pending = *rc::gen::inRange(0, 8) == 0;
  poll.rows_pending = *rc::gen::inRange(0, 8) == 0;
  poll.rows_failed = *rc::gen::inRange(0, 8) == 0;
  if (*rc::gen::inRange(0, 2) == 0)
    poll.action = *rc::gen::weightedElement<RecoveryAction>(
        {{6, RecoveryAction::kNone}, {1, RecoveryAction::kReset}, {1, RecoveryAction::kRecoverImex}});
  return poll;
}

Observation random_observation(const std::string& uuid) {
  switch (*rc::gen::inRange(0, 10)) {
    case 0:
      return XidSeen{uuid, *rc::gen::element<std::uint64_t>(13, 48, 79, 94, 9999), {}};
    case 1:
      return XidSeen{uuid, *rc::gen::element<std::uint64_t>(79, 94), {*rc::gen::inRange(0U, 3U), 0U}};
    case 2:
      return MonitoringSeen{uuid, *rc::gen::arbitrary<bool>()};
    default:
      return random_poll(uuid);
  }
}

std::vector<Step> random_history() {
  std::vector<Step> steps;
  const int count = property_steps(60);
  for (int i = 0; i < count; ++i)
    steps.push_back({random_observation(*rc::gen::element<std::string>("GPU-a", "GPU-b", "GPU-c")),
                     1s * *rc::gen::element(0, 1, 20, 31, 400, 4000, 100'000)});
  return steps;
}

RC_GTEST_PROP(HealthPropertyTest, OneGpuNeverChangesAnother, ()) {
  Health health{XidPolicy()};
  TimePoint now{1s};
  for (const auto& step : random_history()) {
    std::map<std::string, std::vector<Reason>> before;
    for (const auto& uuid : health.uuids()) before[uuid] = health.reasons(uuid);
    const auto uuid = std::visit(
        [](const auto& seen) -> std::string {
          if constexpr (requires { seen.uuid; }) return seen.uuid;
          return "";
        },
        step.observation);
    for (const auto& change : health.apply(step.observation, now += step.after))
      RC_ASSERT(change.uuid == uuid);
    for (const auto& [other, reasons] : before)
      if (other != uuid) RC_ASSERT(health.reasons(other) == reasons);
  }
}

RC_GTEST_PROP(HealthPropertyTest, FitMeansThatNoOpenReasonTakesItOut, ()) {
  Health health{XidPolicy()};
  TimePoint now{1s};
  std::map<std::string, bool> told;  // what a listener believes
  std::map<std::string, std::size_t> open;
  for (const auto& step : random_history()) {
    for (const auto& change : health.apply(step.observation, now += step.after)) {
      RC_ASSERT(change.was_healthy == (!told.contains(change.uuid) || told[change.uuid]));
      told[change.uuid] = change.healthy;
      open[change.uuid] += change.opened.size() - change.closed.size();
    }
    for (const auto& uuid : health.uuids()) {
      const auto reasons = health.reasons(uuid);
      const bool out = std::ranges::any_of(reasons, [](const Reason& reason) { return reason.takes_out; });
      RC_ASSERT(health.healthy(uuid) == !out);
      RC_ASSERT((!told.contains(uuid) || told[uuid]) == !out);
      RC_ASSERT(open[uuid] == reasons.size());
    }
  }
}

RC_GTEST_PROP(HealthPropertyTest, AHealthyGpuComesBackWithinTheBound, ()) {
  const HealthTiming timing;
  Health health{XidPolicy(), timing};
  TimePoint now{1s};
  for (const auto& step : random_history()) health.apply(step.observation, now += step.after);
  const auto bound = now + timing.longest + 20s;
  const auto errors = *rc::gen::inRange<std::uint64_t>(0, 3);
  while (now < bound) {
    now += 10s;
    for (const auto& uuid : health.uuids()) health.apply(GpuPolled{.uuid = uuid, .uncorrected = errors}, now);
  }
  // The first of these polls may still have brought an ECC error.
  for (const auto& uuid : health.uuids()) RC_ASSERT(health.healthy(uuid));
}

RC_GTEST_PROP(HealthPropertyTest, TheSameHistoryGivesTheSame, ()) {
  Health first{XidPolicy()};
  Health second{XidPolicy()};
  TimePoint now{1s};
  for (const auto& step : random_history()) {
    now += step.after;
    RC_ASSERT(first.apply(step.observation, now) == second.apply(step.observation, now));
  }
}

RC_GTEST_PROP(HealthPropertyTest, AnInstancesTroubleLeavesTheOthersAsTheyAre, ()) {
  Health health{XidPolicy()};
  TimePoint now{1s};
  for (int i = 0; i < 20; ++i) {
    const auto before = health.healthy("GPU-a", {1, 0});
    health.apply(XidSeen{"GPU-a", *rc::gen::element<std::uint64_t>(48, 79), {2U, 0U}}, now += 1s);
    RC_ASSERT(health.healthy("GPU-a", {1, 0}) == before);
    RC_ASSERT(!health.healthy("GPU-a", {2, 0}));
  }
}

}  // namespace
}  // namespace drover::gpu

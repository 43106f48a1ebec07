#include "share/referee.h"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

namespace drover::share {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;

constexpr std::uint64_t kMiB = 1ULL << 20, kGiB = 1ULL << 30;
using Kind = Verdict::Kind;

HeldMemory held(const std::string& task, std::uint64_t bytes, std::uint32_t pid = 0) {
  const auto number = pid != 0 ? pid : static_cast<std::uint32_t>(std::hash<std::string>{}(task) % 1000 + 1);
  return {number, bytes, 100, task};
}

/// GPU 0 is shared by `a`, 8 GiB, and `b`, 4 GiB; GPU 1 by a group of `c` and `d`, 2 GiB, and by `a`, 1 GiB.
class RefereeTest : public testing::Test {
 protected:
  explicit RefereeTest(Punishment punishment = Punishment::kKill) : referee_(punishment) {
    referee_.set(all());
  }
  static std::vector<Allowance> all() {
    return {{"GPU-0", "a", {"a"}, 8 * kGiB},
            {"GPU-0", "b", {"b"}, 4 * kGiB},
            {"GPU-1", "0/team", {"c", "d"}, 2 * kGiB},
            {"GPU-1", "a", {"a"}, 1 * kGiB}};
  }
  /// What follows from a look at one GPU, an interval after the last.
  std::vector<Verdict> look(std::vector<HeldMemory> processes, const std::string& gpu = "GPU-0") {
    now_ += kInterval;
    return referee_.judge({{gpu, {std::nullopt, std::move(processes)}}}, now_);
  }
  static auto is(Kind kind, const std::string& task) {
    return AllOf(Field(&Verdict::kind, kind), Field(&Verdict::task, task));
  }

  Referee referee_;
  Time now_{1h};
};

class ReportTest : public RefereeTest {
 protected:
  ReportTest() : RefereeTest(Punishment::kReport) {}
};

TEST_F(RefereeTest, OneLookIsNoOffenceAndTwoAre) {
  EXPECT_THAT(look({held("a", 8 * kGiB)}), IsEmpty());
  EXPECT_THAT(look({held("a", 9 * kGiB)}), IsEmpty());
  EXPECT_THAT(look({held("a", 8 * kGiB)}), IsEmpty());
  EXPECT_THAT(look({held("a", 9 * kGiB)}), IsEmpty());
  const auto verdicts = look({held("a", 10 * kGiB), held("b", 4 * kGiB)});
  ASSERT_THAT(verdicts, ElementsAre(is(Kind::kOffence, "a"), is(Kind::kEnd, "a")));
  EXPECT_EQ(verdicts[0].held, 10 * kGiB);
  EXPECT_EQ(verdicts[0].allowance.bytes, 8 * kGiB);
  EXPECT_EQ(referee_.accounts()[0].overruns, 3U);
  EXPECT_EQ(referee_.accounts()[0].offences, 1U);
  EXPECT_EQ(referee_.accounts()[0].held, 10 * kGiB);
  EXPECT_EQ(referee_.accounts()[1].offences, 0U);
}

TEST_F(RefereeTest, WhoseAllowanceIsMadeSmallerKeepsWhatHeHoldsUntilHeHoldsLess) {
  const auto allow = [&](std::uint64_t bytes) {
    auto allowances = all();
    allowances[0].bytes = bytes;
    referee_.set(std::move(allowances));
  };
  EXPECT_THAT(look({held("a", 8 * kGiB)}), IsEmpty());
  allow(2 * kGiB);
  EXPECT_THAT(look({held("a", 8 * kGiB)}), IsEmpty());
  EXPECT_THAT(look({held("a", 8 * kGiB)}), ElementsAre(is(Kind::kOffence, "a"))) << "it is told";
  EXPECT_THAT(look({held("a", 6 * kGiB)}), IsEmpty());
  EXPECT_THAT(look({held("a", 6 * kGiB + kTolerance)}), IsEmpty());
  EXPECT_THAT(look({held("a", 7 * kGiB)}), ElementsAre(is(Kind::kEnd, "a"))) << "it grows";
  EXPECT_THAT(look({held("a", 2 * kGiB)}), IsEmpty());
  EXPECT_THAT(look({held("a", 3 * kGiB)}), IsEmpty());
  now_ += kEndedAgain;
  EXPECT_THAT(look({held("a", 3 * kGiB)}), ElementsAre(is(Kind::kEnd, "a"))) << "it was less once";
  allow(4 * kGiB);
  EXPECT_THAT(look({held("a", 5 * kGiB)}), IsEmpty());
  now_ += kEndedAgain;
  EXPECT_THAT(look({held("a", 5 * kGiB)}), ElementsAre(is(Kind::kEnd, "a"))) << "a larger one spares nobody";
}

/// As after a restart: what it had is told with it.
TEST_F(RefereeTest, WhoHadMoreBeforeHeWasWatchedIsSparedTheSame) {
  Referee referee(Punishment::kKill);
  referee.set({{.gpu = "GPU-0", .name = "a", .tasks = {"a"}, .bytes = 2 * kGiB, .earlier = 8 * kGiB},
               {.gpu = "GPU-0", .name = "b", .tasks = {"b"}, .bytes = 2 * kGiB, .earlier = 4 * kGiB}});
  std::vector<Verdict> verdicts;
  for (int i = 0; i < 5; ++i) {
    now_ += kInterval;
    for (auto& one :
         referee.judge({{"GPU-0", {std::nullopt, {held("a", 8 * kGiB), held("b", 5 * kGiB)}}}}, now_))
      verdicts.push_back(std::move(one));
  }
  EXPECT_THAT(verdicts, ElementsAre(is(Kind::kOffence, "a"), is(Kind::kOffence, "b"), is(Kind::kEnd, "b")));
}

TEST_F(RefereeTest, ALittleIsCountedAndNoMore) {
  for (int i = 0; i < 100; ++i) EXPECT_THAT(look({held("a", 8 * kGiB + kTolerance)}), IsEmpty());
  EXPECT_EQ(referee_.accounts()[0].overruns, 100U);
  EXPECT_EQ(referee_.accounts()[0].offences, 0U);
  EXPECT_THAT(look({held("a", 8 * kGiB + kTolerance + 1)}), IsEmpty());
  EXPECT_THAT(look({held("a", 8 * kGiB + kTolerance + 1)}), testing::SizeIs(2));
}

TEST_F(RefereeTest, ProcessesOfATaskCountTogether) {
  EXPECT_THAT(look({held("a", 5 * kGiB, 1), held("a", 5 * kGiB, 2)}), IsEmpty());
  EXPECT_THAT(look({held("a", 5 * kGiB, 1), held("a", 5 * kGiB, 3)}),
              ElementsAre(is(Kind::kOffence, "a"), is(Kind::kEnd, "a")))
      << "whichever come and go";
}

TEST_F(RefereeTest, EachGpuByItself) {
  EXPECT_THAT(look({held("a", 2 * kGiB)}, "GPU-1"), IsEmpty());
  EXPECT_THAT(look({held("a", 2 * kGiB)}, "GPU-0"), IsEmpty());
  EXPECT_THAT(look({held("a", 2 * kGiB)}, "GPU-0"), IsEmpty());
  const auto verdicts = look({held("a", 2 * kGiB)}, "GPU-1");
  ASSERT_THAT(verdicts, testing::SizeIs(2)) << "in a row are those that were answered";
  EXPECT_EQ(verdicts[0].allowance.gpu, "GPU-1");
}

TEST_F(RefereeTest, AGroupCountsTogetherAndItsLargestIsEnded) {
  EXPECT_THAT(look({held("c", kGiB), held("d", kGiB)}, "GPU-1"), IsEmpty());
  EXPECT_THAT(look({held("c", kGiB), held("d", 2 * kGiB)}, "GPU-1"), IsEmpty());
  EXPECT_THAT(look({held("c", kGiB), held("d", 2 * kGiB)}, "GPU-1"),
              ElementsAre(is(Kind::kOffence, "d"), is(Kind::kEnd, "d")));
  EXPECT_THAT(look({held("c", 3 * kGiB)}, "GPU-1"), IsEmpty()) << "it may be over when the first is gone";
  for (int i = 0; i < 8; ++i) EXPECT_THAT(look({held("c", 3 * kGiB)}, "GPU-1"), IsEmpty());
  EXPECT_THAT(look({held("c", 3 * kGiB)}, "GPU-1"), ElementsAre(is(Kind::kEnd, "c")));
}

TEST_F(RefereeTest, AGroupThatGrowsIsTheSame) {
  EXPECT_THAT(look({held("c", 3 * kGiB)}, "GPU-1"), IsEmpty());
  auto larger = all();
  larger[2].tasks.insert("e");
  referee_.set(larger);
  EXPECT_THAT(look({held("c", 3 * kGiB)}, "GPU-1"), testing::SizeIs(2));
  referee_.set({});
  EXPECT_THAT(referee_.accounts(), IsEmpty());
  EXPECT_THAT(look({held("c", 3 * kGiB)}, "GPU-1"), IsEmpty());
}

TEST_F(ReportTest, TellsOnceAndEndsNobody) {
  EXPECT_THAT(look({held("b", 6 * kGiB)}), IsEmpty());
  EXPECT_THAT(look({held("b", 6 * kGiB)}), ElementsAre(is(Kind::kOffence, "b")));
  for (int i = 0; i < 200; ++i) EXPECT_THAT(look({held("b", (i % 3 == 0 ? 1 : 6) * kGiB)}), IsEmpty());
  EXPECT_EQ(referee_.accounts()[1].offences, 1U) << "it goes up and down, and stays one";
  for (auto rest = kForgiven; rest >= 0ms; rest -= kInterval) EXPECT_THAT(look({held("b", kGiB)}), IsEmpty());
  EXPECT_THAT(look({held("b", 6 * kGiB)}), IsEmpty());
  EXPECT_THAT(look({held("b", 6 * kGiB)}), ElementsAre(is(Kind::kOffence, "b")));
}

TEST_F(RefereeTest, LooksAtTheSameTimeAreOne) {
  for (int i = 0; i < 50; ++i) {
    now_ += 1ms;
    EXPECT_THAT(referee_.judge({{"GPU-0", {{}, {held("a", 9 * kGiB)}}}}, now_), IsEmpty());
  }
}

TEST_F(RefereeTest, AClockThatIsSetBackBeginsAnew) {
  EXPECT_THAT(look({held("a", 9 * kGiB)}), IsEmpty());
  now_ -= 30min;
  EXPECT_THAT(look({held("a", 9 * kGiB)}), IsEmpty());
  EXPECT_THAT(look({held("a", 9 * kGiB)}), testing::SizeIs(2));
  now_ -= 10min;
  EXPECT_THAT(look({held("a", kGiB)}), IsEmpty());
  now_ += kForgiven;
  EXPECT_THAT(look({held("a", kGiB)}), IsEmpty());
  EXPECT_THAT(look({held("a", 9 * kGiB)}), IsEmpty());
  EXPECT_THAT(look({held("a", 9 * kGiB)}), testing::SizeIs(2)) << "forgiven, by the clock as it is now";
}

TEST_F(RefereeTest, AGpuThatDoesNotAnswerChangesNothing) {
  EXPECT_THAT(look({held("a", 9 * kGiB)}), IsEmpty());
  now_ += 5s;
  EXPECT_THAT(referee_.judge({}, now_), IsEmpty());
  EXPECT_EQ(referee_.accounts()[0].held, 9 * kGiB);
  EXPECT_THAT(look({held("a", 9 * kGiB)}), testing::SizeIs(2));
}

TEST_F(RefereeTest, AProcessWhoseNumberWasTakenIsNobodys) {
  const HeldMemory old{7, 9 * kGiB, 100, ""}, gone{7, 9 * kGiB, 0, ""}, next{7, 9 * kGiB, 500, "a"};
  EXPECT_THAT(look({old}), IsEmpty());
  EXPECT_THAT(look({gone}), IsEmpty());
  for (int i = 0; i < 5; ++i) EXPECT_THAT(look({next}), IsEmpty()) << "'a' has only its number";
  EXPECT_THAT(look({}), IsEmpty());
  EXPECT_THAT(look({next}), IsEmpty());
  EXPECT_THAT(look({next}), testing::SizeIs(2)) << "now the driver tells of it";
}

TEST_F(RefereeTest, WhatNoTasksProcessHoldsIsAFigure) {
  now_ += kInterval;
  const Look seen{10 * kGiB, {held("a", 3 * kGiB), held("other", 2 * kGiB), held("", 4 * kGiB)}};
  EXPECT_THAT(referee_.judge({{"GPU-0", seen}, {"GPU-1", {std::nullopt, {}}}}, now_), IsEmpty());
  EXPECT_THAT(referee_.unattributed(), ElementsAre(testing::Pair("GPU-0", 5 * kGiB)));
  EXPECT_THAT(referee_.judge({{"GPU-0", {1 * kGiB, {held("a", 3 * kGiB)}}}}, now_ + kInterval), IsEmpty());
  EXPECT_THAT(referee_.unattributed(), ElementsAre(testing::Pair("GPU-0", 0U))) << "never below nothing";
}

/// A look as it may come: of any tasks' processes, at any time.
struct Step {
  std::chrono::milliseconds passed;
  std::map<std::string, std::vector<HeldMemory>> gpus;
};
rc::Gen<HeldMemory> process() {
  return rc::gen::map(
      rc::gen::tuple(rc::gen::inRange<std::uint32_t>(1, 12), rc::gen::inRange<std::uint64_t>(0, 5000),
                     rc::gen::element<std::string>("a", "b", "c", "d", "x", "")),
      [](const auto& parts) {
        const auto& [pid, mib, task] = parts;
        return HeldMemory{pid, mib * kMiB, task.empty() ? 0ULL : 1 + pid % 3, task};
      });
}
rc::Gen<Step> step() {
  using Processes = std::vector<HeldMemory>;
  return rc::gen::map(rc::gen::tuple(rc::gen::element(100, 100, 100, 101, 95, 3, -5000, 3'600'000),
                                     rc::gen::container<Processes>(process()),
                                     rc::gen::container<Processes>(process()), rc::gen::inRange(0, 4)),
                      [](const auto& parts) {
                        const auto& [passed, first, second, answers] = parts;
                        Step made{std::chrono::milliseconds(passed), {}};
                        const auto each_once = [](const Processes& processes) {
                          std::map<std::uint32_t, HeldMemory> by_pid;
                          for (const auto& one : processes) by_pid.emplace(one.pid, one);
                          Processes list;
                          for (const auto& [pid, one] : by_pid) list.push_back(one);
                          return list;
                        };
                        if (answers != 1) made.gpus["GPU-0"] = each_once(first);
                        if (answers != 2) made.gpus["GPU-1"] = each_once(second);
                        return made;
                      });
}

/// Whatever comes, in whichever order: who is judged was over by more than is tolerated, in this look and in
/// the one before it at the same GPU; and where nobody is to be ended nobody is.
RC_GTEST_PROP(RefereeProperty, NobodySuffersWhoStaysWithin, (bool kills)) {
  const auto steps = *rc::gen::container<std::vector<Step>>(40, step());
  Referee referee(kills ? Punishment::kKill : Punishment::kReport);
  referee.set({{"GPU-0", "a", {"a"}, 8 * kGiB},
               {"GPU-0", "b", {"b"}, 4 * kGiB},
               {"GPU-1", "0/team", {"c", "d"}, 2 * kGiB}});
  std::map<std::string, bool> was_over;  // by GPU and name
  Time now{24h};
  for (const auto& one : steps) {
    now += one.passed;
    Looks looks;
    for (const auto& [gpu, processes] : one.gpus) looks[gpu] = {std::nullopt, processes};
    const auto verdicts = referee.judge(looks, now);
    std::map<std::string, bool> is_over = was_over;
    for (const auto& account : referee.accounts()) {
      const auto& allowance = account.allowance;
      if (!one.gpus.contains(allowance.gpu)) continue;
      std::uint64_t at_most = 0;
      for (const auto& process : one.gpus.at(allowance.gpu))
        if (allowance.tasks.contains(process.task)) at_most += process.bytes;
      RC_ASSERT(account.held <= at_most);
      is_over[allowance.gpu + allowance.name] = account.held > allowance.bytes + kTolerance;
    }
    for (const auto& verdict : verdicts) {
      const auto key = verdict.allowance.gpu + verdict.allowance.name;
      RC_ASSERT(is_over[key]);
      RC_ASSERT(was_over[key]);
      RC_ASSERT(verdict.allowance.tasks.contains(verdict.task));
      RC_ASSERT(verdict.held > verdict.allowance.bytes + kTolerance);
      RC_ASSERT(kills || verdict.kind == Kind::kOffence);
    }
    was_over = is_over;
  }
}

/// Whoever stays over is found in the second look, whatever was before.
RC_GTEST_PROP(RefereeProperty, WhoStaysOverIsEndedInTheSecondLook, ()) {
  const auto steps = *rc::gen::container<std::vector<Step>>(step());
  Referee referee(Punishment::kKill);
  referee.set({{"GPU-0", "a", {"a"}, 8 * kGiB}});
  Time now{24h};
  for (const auto& one : steps) {
    Looks looks;
    for (const auto& [gpu, processes] : one.gpus) looks[gpu] = {std::nullopt, processes};
    (void)referee.judge(looks, now += one.passed);
  }
  now += kForgiven;
  (void)referee.judge({{"GPU-0", {}}}, now);
  const Looks over{{"GPU-0", {std::nullopt, {{99, 9 * kGiB, 1, "a"}}}}};
  RC_ASSERT(referee.judge(over, now + kInterval).empty());
  RC_ASSERT(referee.judge(over, now + 2 * kInterval).back().kind == Kind::kEnd);
}

}  // namespace
}  // namespace drover::share

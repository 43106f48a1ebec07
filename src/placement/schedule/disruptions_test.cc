#include "placement/schedule/disruptions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "placement/testing/properties.h"
#include "placement/testing/workplace.h"

namespace drover::placement {
namespace {

using namespace placement::testing;
using ::testing::ElementsAre;

/// Of the one preemption there is; none when there is none.
std::vector<std::string> ended(const Plan& plan) {
  if (plan.preemptions.empty()) return {};
  auto victims = plan.preemptions.front().victims;
  std::ranges::sort(victims);
  return victims;
}

TEST(Disruptions, WhoIsProtectedStaysWhileOthersWillDo) {
  Workplace work(1, 4);
  for (const auto* id : {"a", "b", "c", "d"}) work.run(job(id, gpus(1)));
  work.budgets = {{0, {{"a", 1}, {"b", 1}}}};
  work.submit(job("two", gpus(2), 1));
  EXPECT_THAT(ended(work.step()), ElementsAre("c", "d"));
}

TEST(Disruptions, ManyThatNobodyProtectsGoRatherThanOneThatIs) {
  Workplace work(2, 2);
  work.run(job("large", gpus(2)));
  work.run(job("a", gpus(1)));
  work.run(job("b", gpus(1)));
  work.budgets = {{0, {{"large", 1}}}};
  work.submit(job("two", gpus(2), 1));
  EXPECT_THAT(ended(work.step()), ElementsAre("a", "b"));
}

TEST(Disruptions, BudgetsAreCountedDownOverAllThatAPlanEnds) {
  Workplace work(4, 1);
  for (const auto* id : {"a", "b", "c", "d"}) work.run(job(id, gpus(1)));
  work.budgets = {{1, {{"a", 1}, {"b", 1}}}};
  work.submit(job("first", gpus(1), 1));
  work.submit(job("second", gpus(1), 1));
  const auto plan = work.step();
  ASSERT_EQ(plan.preemptions.size(), 2U);
  EXPECT_THAT(plan.preemptions[0].victims, ElementsAre("a"));
  EXPECT_THAT(plan.preemptions[1].victims, ElementsAre("c"));
  work.submit(job("third", gpus(1), 1));
  work.submit(job("fourth", gpus(1), 1));
  const auto next = work.step();  // the second goes beyond the budget: nobody else is left
  ASSERT_EQ(next.preemptions.size(), 2U);
}

TEST(Disruptions, AGangTakesAsMuchOfABudgetAsItHasThere) {
  Workplace work(2, 4);
  work.run(gang("gang", 4, gpus(1)));
  work.run(job("single", gpus(4)));
  work.budgets = {{3, {{"gang", 4}}}, {1, {{"single", 1}}}};
  work.submit(job("four", gpus(4), 1));
  EXPECT_THAT(ended(work.step()), ElementsAre("single"));
}

TEST(Disruptions, WhereItCannotBeHelpedBudgetsAreExceededByTheLeast) {
  Workplace work(2, 2);
  for (const auto* id : {"a", "b", "c", "d"}) work.run(job(id, gpus(1)));
  const auto mate = [&](const std::string& id, const std::string& other) {
    return work.running.at(id).decisions[0].node == work.running.at(other).decisions[0].node;
  };
  ASSERT_TRUE(mate("a", "b") && mate("c", "d"));
  work.budgets = {{0, {{"a", 1}, {"b", 1}, {"d", 1}}}};
  work.submit(job("two", gpus(2), 1));
  EXPECT_THAT(ended(work.step()), ElementsAre("c", "d"));
}

/// What ending them goes beyond the budgets.
int beyond(const std::vector<DisruptionBudget>& budgets, const std::vector<std::string>& victims) {
  int beyond = 0;
  for (const auto& budget : budgets) {
    int spent = 0;
    for (const auto& victim : victims)
      if (const auto found = budget.containers.find(victim); found != budget.containers.end())
        spent += found->second;
    if (spent > 0) beyond += std::max(0, spent - budget.allowed);
  }
  return beyond;
}

struct Best {
  int beyond = std::numeric_limits<int>::max();
  std::size_t victims = 0;
};

/// By trying all sets.
Best best_of(const Workplace& work, const Gang& gang) {
  std::vector<std::string> ids;
  for (const auto& [id, running] : work.running) ids.push_back(id);
  Best best;
  for (unsigned set = 1; set < 1U << ids.size(); ++set) {
    std::vector<std::string> victims;
    auto without = work.cluster;
    for (std::size_t i = 0; i < ids.size(); ++i)
      if ((set >> i & 1) != 0) {
        victims.push_back(ids[i]);
        const auto& gone = work.running.at(ids[i]);
        for (std::size_t rank = 0; rank < gone.decisions.size(); ++rank)
          without.release(allocation_id(gone.job, rank));
      }
    const Best now{beyond(work.budgets, victims), victims.size()};
    if (std::pair(now.beyond, now.victims) < std::pair(best.beyond, best.victims) && try_place(without, gang))
      best = now;
  }
  return best;
}

int check_budgets(const std::vector<std::uint64_t>& seeds) {
  int plans = 0;
  for (const auto seed : seeds) {
    Dice dice(seed);
    Workplace work(dice.in(1, 3), 3);
    for (int i = 0; i < dice.in(2, 8); ++i)
      work.submit(gang("r" + std::to_string(i), dice.one_in(4) ? 2 : 1, gpus(dice.in(1, 2))));
    work.step();
    work.waiting.clear();
    for (int i = 0; i < dice.in(1, 3); ++i) {
      DisruptionBudget budget{dice.in(0, 2)};
      for (const auto& [id, running] : work.running)
        if (dice.one_in(2)) budget.containers[id] = dice.in(1, static_cast<int>(running.decisions.size()));
      work.budgets.push_back(std::move(budget));
    }
    const auto high = gang("high", dice.in(1, 3), gpus(dice.in(1, 3)), 1);
    work.submit(high);
    if (try_place(work.cluster, high.gang)) continue;
    const auto best = best_of(work, high.gang);
    const auto plan = work.make_plan();
    const auto victims = ended(plan);
    RC_ASSERT(victims.empty() == (best.victims == 0));
    if (victims.empty()) continue;
    RC_ASSERT(beyond(work.budgets, victims) == best.beyond);
    RC_ASSERT(victims.size() == best.victims);
    ++plans;
  }
  return plans;
}

TEST(Disruptions, NoneIsExceededWhereThatCanBeHelped) {
  check_until(property_steps(kUsualSteps) / 4, 50, check_budgets);
}

}  // namespace
}  // namespace drover::placement

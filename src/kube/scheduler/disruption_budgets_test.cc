#include "kube/scheduler/disruption_budgets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "kube/scheduler/testing/objects.h"

namespace drover::kube::scheduler {
namespace {

using testing::asking_pod;
using ::testing::ElementsAre;
using testing::gpu_node;
using testing::gpus_of;
using ::testing::IsEmpty;
using testing::kMoment;
using ::testing::Pair;
using ::testing::SizeIs;

nlohmann::json budget_object(int allowed, const char* selector = R"({"matchLabels": {"app": "web"}})") {
  return {{"metadata", {{"name", "budget"}, {"namespace", "team"}}},
          {"spec", {{"selector", nlohmann::json::parse(selector)}}},
          {"status", {{"disruptionsAllowed", allowed}}}};
}

Pod web_pod(const std::string& name, const std::string& app = "web") {
  auto pod = asking_pod(name, {.gpus = 1});
  pod.labels = std::make_shared<const Labels>(Labels{{"app", app}});
  pod.node_name = "a";
  return pod;
}

const placement::DisruptionBudget& only(const BudgetBook& book) {
  return book.budgets()->at(0);
}

TEST(BudgetBook, CountsThePodsThatABudgetSelectsByTheirJobs) {
  BudgetBook book;
  book.put_pod("gang", web_pod("a"));
  book.put_budget(*read_pod_budget(budget_object(2)));
  book.put_pod("gang", web_pod("b"));
  book.put_pod("alone", web_pod("c"));
  book.put_pod("other", web_pod("d", "db"));
  auto elsewhere = web_pod("e");
  elsewhere.name_space = "others";
  book.put_pod("elsewhere", elsewhere);
  EXPECT_EQ(only(book).allowed, 2);
  EXPECT_THAT(only(book).containers, ElementsAre(Pair("alone", 1), Pair("gang", 2)));
  book.remove_pod("uid-c");
  book.remove_pod("uid-b");
  EXPECT_THAT(only(book).containers, ElementsAre(Pair("gang", 1)));
  book.put_pod("gang", web_pod("a", "db"));
  EXPECT_THAT(only(book).containers, IsEmpty());
}

TEST(BudgetBook, WhatIsBeingEvictedIsInItAlready) {
  BudgetBook book;
  book.put_pod("a", web_pod("a"));
  book.put_pod("b", web_pod("b"));
  auto object = budget_object(0);
  object["status"]["disruptedPods"] = {{"a", "2026-01-01T00:00:00Z"}};
  book.put_budget(*read_pod_budget(object));
  EXPECT_THAT(only(book).containers, ElementsAre(Pair("b", 1)));
  book.put_budget(*read_pod_budget(budget_object(0)));
  EXPECT_THAT(only(book).containers, SizeIs(2));
}

TEST(BudgetBook, ASelectorThatIsEmptyOrNotValidSelectsNothing) {
  for (const auto* selector :
       {"{}", "null", R"({"matchExpressions": [{"key": "app", "operator": "Maybe"}]})"}) {
    BudgetBook book;
    book.put_pod("a", web_pod("a"));
    book.put_budget(*read_pod_budget(budget_object(0, selector)));
    EXPECT_THAT(only(book).containers, IsEmpty()) << selector;
  }
}

TEST(BudgetBook, WhatWasChosenToEndIsTakenOffUntilTheBudgetKnows) {
  BudgetBook book;
  book.put_budget(*read_pod_budget(budget_object(2)));
  for (const auto* name : {"a", "b", "c"}) book.put_pod(name, web_pod(name));
  book.set_ending("uid-a", true);
  book.set_ending("uid-b", true);
  EXPECT_EQ(only(book).allowed, 0);
  book.set_ending("uid-b", false);  // could not be ended
  EXPECT_EQ(only(book).allowed, 1);
  book.put_budget(*read_pod_budget(budget_object(2)));  // told for another reason
  EXPECT_EQ(only(book).allowed, 1);
  auto ending = web_pod("a");
  ending.terminating = true;
  book.put_pod("a", ending);
  EXPECT_EQ(only(book).allowed, 1);
  book.put_budget(*read_pod_budget(budget_object(1)));
  EXPECT_EQ(only(book).allowed, 1);
}

TEST(BudgetBook, BudgetsGoInAnyOrder) {
  BudgetBook book;
  book.put_pod("a", web_pod("a"));
  for (const auto* name : {"one", "two", "three"}) {
    auto object = budget_object(static_cast<int>(std::string(name).size()));
    object["metadata"]["name"] = name;
    book.put_budget(*read_pod_budget(object));
  }
  book.remove_budget("team", "one");
  book.put_pod("b", web_pod("b"));
  ASSERT_THAT(*book.budgets(), SizeIs(2));
  for (const auto& budget : *book.budgets()) EXPECT_THAT(budget.containers, SizeIs(2));
  book.remove_budget("team", "three");
  EXPECT_EQ(only(book).allowed, 3);
  book.remove_budget("team", "two");
  book.remove_budget("team", "two");
  book.remove_pod("uid-a");
  EXPECT_THAT(*book.budgets(), IsEmpty());
}

TEST(BudgetBook, WhatIsLookedAtStaysAsItWas) {
  BudgetBook book;
  book.put_budget(*read_pod_budget(budget_object(1)));
  const auto before = book.budgets();
  book.put_pod("a", web_pod("a"));
  EXPECT_THAT(before->at(0).containers, IsEmpty());
  EXPECT_THAT(only(book).containers, SizeIs(1));
}

TEST(BudgetBook, WhatNoServerGivesOutIsRefused) {
  auto object = budget_object(1);
  object["status"]["disruptionsAllowed"] = "many";
  const auto read = read_pod_budget(object);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message,
            "the PodDisruptionBudget 'team/budget': the field 'disruptionsAllowed' is no whole number");
}

TEST(Scheduler, SparesWhomABudgetProtects) {
  Scheduler scheduler;
  scheduler.put_node(gpu_node("a", 2), gpus_of("a", 2));
  scheduler.budgets().put_budget(*read_pod_budget(budget_object(0)));
  auto younger = web_pod("younger");
  younger.created += std::chrono::seconds(5);  // would go first
  scheduler.put_pod({younger});
  scheduler.put_pod({web_pod("older", "db")});
  scheduler.put_pod({asking_pod("urgent", {.gpus = 1, .priority = 5})});
  auto round = scheduler.decide(kMoment);
  ASSERT_THAT(round.evictions, SizeIs(1));
  EXPECT_EQ(round.evictions[0].pod.name, "older");
  // Where nobody else is left it gives way.
  scheduler.put_pod({asking_pod("second", {.gpus = 1, .priority = 5})});
  round = scheduler.decide(kMoment);
  ASSERT_THAT(round.evictions, SizeIs(1));
  EXPECT_EQ(round.evictions[0].pod.name, "younger");
}

TEST(Scheduler, ABudgetIsSpentByThoseWhoWereChosenBefore) {
  Scheduler scheduler;
  scheduler.put_node(gpu_node("a", 3), gpus_of("a", 3));
  scheduler.budgets().put_budget(*read_pod_budget(budget_object(1)));
  for (const auto* name : {"x", "y"}) {
    auto pod = web_pod(name);
    pod.created += std::chrono::seconds(5);
    scheduler.put_pod({pod});
  }
  scheduler.put_pod({web_pod("older", "db")});
  std::vector<std::string> ended;
  for (const auto* name : {"first", "second"}) {
    scheduler.put_pod({asking_pod(name, {.gpus = 1, .priority = 5})});
    const auto round = scheduler.decide(kMoment);
    ASSERT_THAT(round.evictions, SizeIs(1));
    ended.push_back(round.evictions[0].pod.name);
  }
  EXPECT_EQ(ended[1], "older");
}

}  // namespace
}  // namespace drover::kube::scheduler

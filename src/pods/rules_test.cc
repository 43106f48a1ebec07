#include "kube/scheduler/sharing/rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/eventually.h"
#include "kube/client/testing/fake_api.h"
#include "pods/pod_view.h"
#include "pods/rule_keeper.h"
#include "pods/rule_objects.h"

namespace drover::pods {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace scheduler = kube::scheduler;

std::string of_user(const std::string& user) {
  return "drover-" + user;
}

placement::Rules some_rules() {
  placement::Rules rules;
  placement::Queue queue{.path = "lab/vision"};
  queue.limit = {8000, 64'000, 1ULL << 40};
  queue.guarantee = {2500, std::nullopt, std::nullopt};
  queue.weight = 3;
  queue.users = {"ann", "bob"};
  rules.queues["lab/vision"] = queue;
  const placement::Subject ann{placement::SubjectKind::kUser, "ann"};
  rules.quotas[ann] = {ann, {4000, std::nullopt, std::nullopt}, 10};
  return rules;
}

TEST(RuleObjects, AreReadByTheSchedulerAsTheRulesThatTheyWere) {
  std::vector<kube::Object> queues, quotas;
  for (const auto& [path, object] : write_rules(some_rules(), "J", of_user))
    (path.resource == scheduler::kQueues ? queues : quotas).push_back(std::make_shared<const json>(object));
  const auto read = scheduler::read_sharing(queues, quotas);
  EXPECT_THAT(read.refused_queues, IsEmpty());
  EXPECT_THAT(read.refused_quotas, IsEmpty());
  auto wanted = some_rules().queues.at("lab/vision");
  wanted.users = {"drover-ann", "drover-bob"};
  EXPECT_EQ(read.rules.queues.at("lab/vision"), wanted);
  const placement::Subject ann{placement::SubjectKind::kNamespace, "drover-ann"};
  EXPECT_EQ(read.rules.quotas.at(ann).limit.gpu_milli, 4000);
  EXPECT_EQ(read.most_priority.at("drover-ann"), 10);
}

TEST(RuleObjects, WhatAClusterCannotHaveIsRefusedInWords) {
  const auto why = [](auto change) {
    auto rules = some_rules();
    change(rules);
    const auto checked = check_rules(rules, {});
    return checked ? "" : to_string(checked.error());
  };
  EXPECT_EQ(why([](auto&) {}), "");
  for (const auto* name : {"Lab", "lab_1", "lab.vision", "lab/", "-lab", "lab//vision"})
    EXPECT_THAT(why([&](auto& rules) { rules.queues[name].path = name; }), HasSubstr("can be called"))
        << name;
  EXPECT_THAT(why([](auto& rules) { rules.queues["a"].most.idle_timeout = std::chrono::seconds(5); }),
              HasSubstr("--sandboxes node"));
  EXPECT_THAT(why([](auto& rules) { rules.quotas[{placement::SubjectKind::kNamespace, "n"}] = {}; }),
              HasSubstr("is a namespace"));
  EXPECT_THAT(why([](auto& rules) { rules.cordons["GPU-1"] = {}; }), HasSubstr("kubectl cordon"));
}

class RuleKeeperTest : public ::testing::Test {
 protected:
  RuleKeeperTest()
      : keeper_(api_, {.journal = "J",
                       .name_space_of = of_user,
                       .log = [](const auto&) {},
                       .again = std::chrono::milliseconds(5),
                       .look_again = std::chrono::milliseconds(20)}) {}
  std::vector<std::string> names(const kube::Resource& resource) {
    std::vector<std::string> found;
    const auto list = api_.list({.resource = resource});
    if (list)
      for (const auto& object : list->items) found.push_back(kube::text_at(*object, "/metadata/name"));
    return found;
  }
  kube::testing::FakeApi api_;
  RuleKeeper keeper_;
};

TEST_F(RuleKeeperTest, MakesChangesAndTakesAway) {
  keeper_.keep(some_rules());
  EXPECT_TRUE(
      eventually([&] { return names(scheduler::kQueues) == std::vector<std::string>{"lab.vision"}; }));
  EXPECT_TRUE(
      eventually([&] { return names(scheduler::kQuotas) == std::vector<std::string>{"drover-ann"}; }));
  auto rules = some_rules();
  rules.quotas.clear();
  rules.queues["lab/vision"].weight = 5;
  keeper_.keep(rules);
  EXPECT_TRUE(eventually([&] { return names(scheduler::kQuotas).empty(); }));
  EXPECT_EQ(api_.get({scheduler::kQueues, "", "lab.vision"})->at("spec").at("weight"), 5);
}

TEST_F(RuleKeeperTest, WhatSomebodyTakesAwayComesBack) {
  keeper_.keep(some_rules());
  ASSERT_TRUE(eventually([&] { return !names(scheduler::kQueues).empty(); }));
  ASSERT_TRUE(api_.remove({scheduler::kQueues, "", "lab.vision"}));
  EXPECT_TRUE(eventually([&] { return !names(scheduler::kQueues).empty(); }));
}

TEST_F(RuleKeeperTest, ObjectsOfOthersAreLeftAlone) {
  const auto make = [&](const std::string& name, const json& labels) {
    ASSERT_TRUE(api_.create({scheduler::kQueues, ""}, {{"apiVersion", "drover.dev/v1alpha1"},
                                                       {"kind", "Queue"},
                                                       {"metadata", {{"name", name}, {"labels", labels}}},
                                                       {"spec", {{"weight", 9}}}}));
  };
  make("lab.vision", json::object());
  make("other", {{kJournalLabel, "another"}});
  keeper_.keep(some_rules());
  EXPECT_TRUE(eventually([&] { return keeper_.trouble().has_value(); }));
  EXPECT_THAT(keeper_.trouble()->message, HasSubstr("somebody else keeps it"));
  EXPECT_EQ(api_.get({scheduler::kQueues, "", "lab.vision"})->at("spec").at("weight"), 9);
  EXPECT_THAT(names(scheduler::kQueues), ElementsAre("lab.vision", "other"));
  EXPECT_THAT(names(scheduler::kQuotas), ElementsAre("drover-ann")) << "the rest is done";
  ASSERT_TRUE(api_.remove({scheduler::kQueues, "", "lab.vision"}));
  EXPECT_TRUE(eventually([&] { return !keeper_.trouble().has_value(); }));
}

TEST_F(RuleKeeperTest, WhatFailsIsTriedAgain) {
  api_.fail_next({{ErrorKind::kUnavailable, "away", "", ""}, {ErrorKind::kUnavailable, "away", "", ""}});
  keeper_.keep(some_rules());
  EXPECT_TRUE(eventually([&] { return !names(scheduler::kQueues).empty() && !keeper_.trouble(); }));
}

}  // namespace
}  // namespace drover::pods

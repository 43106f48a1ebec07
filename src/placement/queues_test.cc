#include "placement/queues.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>

namespace drover::placement {
namespace {

using ::testing::HasSubstr;

Queue queue(const std::string& path) {
  Queue result;
  result.path = path;
  return result;
}

Rules rules_with(std::vector<Queue> queues) {
  Rules rules;
  for (auto& each : queues) rules.queues[each.path] = each;
  return rules;
}

TEST(Queues, WalkUpToTheRoot) {
  EXPECT_EQ(parent_of("a/b/c"), "a/b");
  EXPECT_EQ(parent_of("a"), "");
  EXPECT_EQ(parent_of(""), "");
}

TEST(Queues, TakeSensibleRules) {
  auto research = queue("research");
  research.limit.gpu_milli = 16'000;
  research.guarantee.gpu_milli = 8'000;
  auto vision = queue("research/vision");
  vision.guarantee.gpu_milli = 6'000;
  auto speech = queue("research/speech_2.x-y");
  speech.guarantee.gpu_milli = 2'000;
  speech.weight = 3;
  EXPECT_TRUE(validate(rules_with({research, vision, speech})));
  EXPECT_TRUE(validate(Rules()));
}

TEST(Queues, RefuseNamesThatAreNone) {
  for (const auto* name : {"", "/", "a/", "/a", "a//b", "a b", "..", "a/./b", "ä", "a/b/c/d/e/f/g/h/i"}) {
    const auto status = validate(rules_with({queue(name)}));
    ASSERT_FALSE(status) << name;
    EXPECT_THAT(status.error().path, ::testing::StartsWith("/queues/")) << name;
  }
  EXPECT_FALSE(validate(rules_with({queue(std::string(65, 'a'))})));
  EXPECT_TRUE(validate(rules_with({queue(std::string(64, 'a')), queue("a/b/c/d/e/f/g/h")})));
}

TEST(Queues, NameTheFieldThatIsWrong) {
  auto wrong = queue("research/vision");
  wrong.limit.milli_cpus = -1;
  EXPECT_EQ(validate(rules_with({wrong})).error().path, "/queues/research~1vision/limit/milli_cpus");
  wrong = queue("a");
  wrong.weight = 0;
  EXPECT_EQ(validate(rules_with({wrong})).error().path, "/queues/a/weight");
  wrong = queue("a");
  wrong.limit.gpu_milli = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(validate(rules_with({wrong})).error().path, "/queues/a/limit/gpu_milli");
  wrong = queue("a");
  wrong.guarantee.memory_bytes = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(validate(rules_with({wrong})).error().path, "/queues/a/guarantee/memory_bytes");
  wrong = queue("a");
  wrong.users = {"ann", "ann"};
  EXPECT_EQ(validate(rules_with({wrong})).error().path, "/queues/a/users/1");
  Rules rules;
  rules.queues["a"] = queue("b");
  EXPECT_EQ(validate(rules).error().path, "/queues/a/path");
}

TEST(Queues, TellAllMistakesAtOnce) {
  auto wrong = queue("a");
  wrong.weight = -4;
  wrong.limit.gpu_milli = -1;
  const auto error = validate(rules_with({wrong})).error();
  EXPECT_THAT(error.message, HasSubstr("2 mistakes"));
  EXPECT_EQ(error.path, "/queues/a/limit/gpu_milli");
}

TEST(Queues, PromiseNoMoreThanThereIs) {
  auto parent = queue("a");
  parent.guarantee.gpu_milli = 4'000;
  auto one = queue("a/one");
  one.guarantee.gpu_milli = 3'000;
  auto two = queue("a/two");
  two.guarantee.gpu_milli = 2'000;
  EXPECT_THAT(validate(rules_with({parent, one, two})).error().message,
              HasSubstr("the children of 'a' are together sure of 5000"));

  one.limit.gpu_milli = 2'000;
  EXPECT_EQ(validate(rules_with({one})).error().path, "/queues/a~1one/guarantee/gpu_milli");

  // What is between need not be defined.
  auto grandchild = queue("a/x/y");
  grandchild.guarantee.gpu_milli = 5'000;
  EXPECT_FALSE(validate(rules_with({parent, grandchild})));
  parent.guarantee = {};
  parent.limit.gpu_milli = 4'999;
  EXPECT_FALSE(validate(rules_with({parent, grandchild})));
  parent.limit.gpu_milli = 5'000;
  EXPECT_TRUE(validate(rules_with({parent, grandchild})));
}

TEST(Queues, RefuseQuotasOfNobody) {
  Rules rules;
  rules.quotas[{SubjectKind::kUser, "ann"}] = {{SubjectKind::kUser, "bob"}, {}, {}};
  EXPECT_EQ(validate(rules).error().path, "/quotas/user:ann/subject");
  rules.quotas.clear();
  rules.quotas[{SubjectKind::kNamespace, "lab"}] = {{SubjectKind::kNamespace, "lab"}, {}, 3};
  EXPECT_EQ(validate(rules).error().path, "/quotas/namespace:lab/max_priority");
  rules.quotas.clear();
  rules.quotas[{SubjectKind::kUser, ""}] = {{SubjectKind::kUser, ""}, {}, {}};
  EXPECT_FALSE(validate(rules));
}

TEST(Queues, LetInWhoIsNamedOnTheWayUp) {
  auto research = queue("research");
  research.users = {"head"};
  auto vision = queue("research/vision");
  vision.users = {"ann"};
  const auto rules = rules_with({research, vision, queue("research/speech"), queue("open/day")});
  EXPECT_TRUE(may_use(rules, "research/vision", "ann"));
  EXPECT_TRUE(may_use(rules, "research/vision", "head"));
  EXPECT_EQ(may_use(rules, "research", "ann").error().kind, ErrorKind::kPermissionDenied);
  EXPECT_EQ(may_use(rules, "research/speech", "ann").error().kind, ErrorKind::kPermissionDenied);
  EXPECT_TRUE(may_use(rules, "open", "anybody"));
  EXPECT_TRUE(may_use(rules, "default", "anybody"));
}

TEST(Queues, SayWhichExist) {
  const auto rules = rules_with({queue("research/vision")});
  const auto error = may_use(rules, "research/visoin", "ann").error();
  EXPECT_EQ(error.kind, ErrorKind::kNotFound);
  EXPECT_EQ(error.hint, "did you mean 'research/vision'? there are: default, research, research/vision");
  EXPECT_EQ(may_use({}, "", "ann").error().hint, "there is: default");
  EXPECT_EQ(may_use(rules, "res", "ann").error().kind, ErrorKind::kNotFound);
}

TEST(Queues, AllowPrioritiesThatWereGranted) {
  Rules rules;
  rules.quotas[{SubjectKind::kUser, "ann"}] = {{SubjectKind::kUser, "ann"}, {}, 5};
  EXPECT_TRUE(may_have_priority(rules, "ann", 5));
  EXPECT_EQ(may_have_priority(rules, "ann", 6).error().hint, "ask for at most 5");
  EXPECT_TRUE(may_have_priority(rules, "bob", 0));
  EXPECT_TRUE(may_have_priority(rules, "bob", -3));
  EXPECT_FALSE(may_have_priority(rules, "bob", 1));
}

RC_GTEST_PROP(QueuesProperty, GuaranteesAddUpOnEveryLevel, ()) {
  // A tree of three levels with random guarantees is sound exactly when every parent covers its children.
  Rules rules;
  bool sound = true;
  std::int64_t sum_of_middle = 0;
  const auto any = rc::gen::inRange<std::int64_t>(0, 10);
  for (int i = 0; i < 3; ++i) {
    auto middle = queue("top/m" + std::to_string(i));
    std::int64_t sum = 0;
    for (int k = 0; k < 2; ++k) {
      auto leaf = queue(middle.path + "/l" + std::to_string(k));
      leaf.guarantee.gpu_milli = *any;
      sum += *leaf.guarantee.gpu_milli;
      rules.queues[leaf.path] = leaf;
    }
    if (*rc::gen::arbitrary<bool>()) middle.guarantee.gpu_milli = *any + 5;
    sound &= sum <= middle.guarantee.gpu_milli.value_or(sum);
    sum_of_middle += middle.guarantee.gpu_milli.value_or(sum);
    rules.queues[middle.path] = middle;
  }
  auto top = queue("top");
  top.guarantee.gpu_milli = *rc::gen::inRange<std::int64_t>(0, 60);
  sound &= sum_of_middle <= *top.guarantee.gpu_milli;
  rules.queues["top"] = top;
  RC_ASSERT(validate(rules).has_value() == sound);
}

}  // namespace
}  // namespace drover::placement

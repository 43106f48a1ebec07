#include "placement/rules_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace drover::placement {
namespace {

using nlohmann::json;

TEST(Rules, ReadBackWhatTheyWrite) {
  Rules rules;
  rules.queues["research/vision"] = {
      "research/vision", {8000, 64'500, 1ULL << 40}, {500, {}, {}}, 3, {"alice"}};
  rules.queues["default"] = {"default", {}, {}, 1, {}};
  rules.quotas[{SubjectKind::kUser, "alice"}] = {{SubjectKind::kUser, "alice"}, {{}, 1, {}}, 10};
  rules.quotas[{SubjectKind::kNamespace, "prod"}] = {{SubjectKind::kNamespace, "prod"}, {0, {}, {}}, {}};
  const auto read_back = decode_rules(encode(rules));
  ASSERT_TRUE(read_back) << to_string(read_back.error());
  EXPECT_EQ(*read_back, rules);
}

TEST(Rules, TakeSizesAsPeopleWriteThem) {
  const auto queue = decode_queue({{"queue", "a"}, {"limit", {{"gpus", 0.1}, {"memory", "1.5GiB"}}}});
  ASSERT_TRUE(queue) << to_string(queue.error());
  EXPECT_EQ(queue->limit, (Limits{100, {}, 3ULL << 29}));
  EXPECT_EQ(queue->weight, 1);
}

TEST(Rules, TellAllMistakesWithTheirPlaces) {
  const auto queue = decode_queue({{"limit", {{"gpus", -1}, {"gpu", 2}}}, {"weight", 0}});
  ASSERT_FALSE(queue);
  for (const char* expected : {"/queue", "/limit/gpus", "/limit/gpu:", "/weight"})
    EXPECT_NE(queue.error().message.find(expected), std::string::npos) << queue.error().message;
  EXPECT_EQ(decode_quota({{"limit", {{"gpus", 1}}}}).error().path, "/user");
  EXPECT_EQ(decode_quota({{"user", "a"}, {"namespace", "b"}}).error().path, "/namespace");
  EXPECT_EQ(decode_quota({{"namespace", "b"}, {"max_priority", 1}}).error().path, "/max_priority");
  EXPECT_EQ(decode_quota({{"user", "a"}, {"limit", {{"memory", "lots"}}}}).error().path, "/limit/memory");
}

TEST(Rules, TellOfValidationInTheirOwnWords) {
  const auto wrong =
      validate({.queues = {{"a/b", {.path = "a/b", .limit = {1000, {}, {}}, .guarantee = {2000, {}, {}}}}}});
  ASSERT_FALSE(wrong);
  const auto [rule, field] = rule_path(wrong.error().path);
  EXPECT_EQ(rule, "/queues/a~1b");
  EXPECT_EQ(field, "/guarantee/gpus");
  EXPECT_EQ(rule_path("/queues/a").field, "");
  EXPECT_EQ(to_string(Subject{SubjectKind::kNamespace, "b"}), "namespace:b");
}

}  // namespace
}  // namespace drover::placement

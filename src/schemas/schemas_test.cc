#include "schemas/schemas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace drover::schemas {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> unknown(std::string_view schema, const json& value) {
  std::vector<std::string> found;
  for (const auto& each : unknown_fields(schema, value))
    found.push_back(each.path + (each.meant.empty() ? "" : " " + each.meant));
  return found;
}

TEST(SchemasTest, AreThoseOfTheDocumentation) {
  std::vector<std::string_view> names;
  for (const auto& [name, text] : texts()) {
    names.push_back(name);
    const auto schema = json::parse(text);
    EXPECT_EQ(schema.at("$schema"), "http://json-schema.org/draft-07/schema#") << name;
    EXPECT_FALSE(schema.at("additionalProperties").get<bool>()) << name;
  }
  EXPECT_THAT(names, ElementsAre("app", "group", "job", "queue", "quota", "task"));
}

TEST(SchemasTest, FindFieldsThatNobodyKnowsAtAnyDepth) {
  EXPECT_THAT(unknown("app", {{"id", "a"}, {"instnces", 3}}), ElementsAre("/instnces instances"));
  EXPECT_THAT(unknown("app", {{"healthChecks", {{{"protocl", "HTTP"}, {"zzzzzzzz", 1}}}}}),
              ElementsAre("/healthChecks/0/protocl protocol", "/healthChecks/0/zzzzzzzz"));
  const json web = {{"id", "web"}, {"gpu", 1}};
  EXPECT_THAT(unknown("group", {{"groups", {{{"apps", {web}}}}}}), ElementsAre("/groups/0/apps/0/gpu gpus"));
  EXPECT_THAT(unknown("job", {{"gpu", 2}, {"gpu_modle", "A100"}}),
              ElementsAre("/gpu gpus", "/gpu_modle gpu_model"));
  EXPECT_THAT(unknown("task", {{"gpus", {{{"count", 1}, {"modle", "A100"}}}}}),
              ElementsAre("/gpus/0/modle model"));
}

TEST(SchemasTest, KnowWhatIsIgnoredAndWhatMayHaveAnyName) {
  EXPECT_THAT(
      unknown("app",
              {{"tasksRunning", 3}, {"uris", {"x"}}, {"residency", {{"a", 1}}}, {"tasks", {{{"a", 1}}}}}),
      IsEmpty());
  EXPECT_THAT(unknown("app", {{"env", {{"A", "1"}}}, {"labels", {{"x/y", "z"}}}}), IsEmpty());
  EXPECT_THAT(unknown("task", {{"constraints", {{"rack", {"r7"}}}}}), IsEmpty());
  EXPECT_THAT(unknown("app", {{"env", "none"}, {"healthChecks", 7}, {"container", {1}}}), IsEmpty())
      << "of a wrong type is another mistake";
}

TEST(SchemasTest, AreAskedForOneField) {
  EXPECT_THAT(field_at("app", "/healthChecks/0/protocol").value().words,
              ElementsAre("HTTP", "HTTPS", "TCP", "COMMAND", "MESOS_TCP", "MESOS_HTTP", "MESOS_HTTPS"));
  EXPECT_EQ(field_at("app", "/mem").value().unit, "MiB");
  EXPECT_EQ(field_at("group", "/apps/7/mem").value().unit, "MiB");
  EXPECT_NE(field_at("app", "/dependencies/0").value().pattern_words, "");
  EXPECT_FALSE(field_at("app", "/nothing/there"));
  EXPECT_TRUE(field_at("app", "/env/a~1b"));
}

TEST(SchemasTest, EndWithTheFirstHundred) {
  json value;
  for (int i = 0; i < 1000; ++i) value[std::to_string(i)] = i;
  EXPECT_EQ(unknown("app", value).size(), 100u);
}

}  // namespace
}  // namespace drover::schemas

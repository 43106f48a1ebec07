#include "kube/scheduler/labels.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace drover::kube::scheduler {
namespace {

using nlohmann::json;

bool selects(const json& selector, const Labels& labels) {
  FieldReader reader;
  const auto read = read_selector(reader, selector);
  EXPECT_TRUE(reader.status("it")) << selector;
  return read && matches(*read, labels);
}

bool valid(const json& selector) {
  FieldReader reader;
  return read_selector(reader, selector).has_value();
}

json expression(const char* key, const char* is, std::vector<std::string> values = {}) {
  return {{"key", key}, {"operator", is}, {"values", std::move(values)}};
}

bool chooses(const json& terms, const Labels& labels, std::string_view name = "n1") {
  FieldReader reader;
  const auto read = read_node_terms(reader, {{"nodeSelectorTerms", terms}});
  return read && matches(*read, labels, name);
}

TEST(Selectors, SelectNothingWhenAbsentAndEverythingWhenEmpty) {
  EXPECT_FALSE(selects(nullptr, {}));
  EXPECT_TRUE(selects(json::object(), {}));
  EXPECT_TRUE(selects({{"matchLabels", json::object()}, {"matchExpressions", json::array()}}, {{"a", "b"}}));
}

TEST(Selectors, AskAllThatTheyName) {
  const json both = {{"matchLabels", {{"app", "web"}}},
                     {"matchExpressions", json::array({expression("tier", "NotIn", {"x"})})}};
  EXPECT_TRUE(selects(both, {{"app", "web"}}));
  EXPECT_TRUE(selects(both, {{"app", "web"}, {"tier", "y"}}));
  EXPECT_FALSE(selects(both, {{"app", "web"}, {"tier", "x"}}));
  EXPECT_FALSE(selects(both, {{"tier", "y"}}));
}

TEST(Selectors, AreMistakesAsKubernetesHasIt) {
  const auto of = [](const json& expression) {
    return json{{"matchExpressions", json::array({expression})}};
  };
  EXPECT_TRUE(valid(of(expression("a", "Exists"))));
  EXPECT_FALSE(valid(of(expression("a", "Exists", {"b"}))));
  EXPECT_FALSE(valid(of(expression("a", "In"))));
  EXPECT_FALSE(valid(of(expression("a", "Gt", {"1"}))));
  EXPECT_FALSE(valid(of(expression("a", "is", {"1"}))));
  EXPECT_FALSE(valid({{"matchLabels", {{"a b", "c"}}}}));
  EXPECT_FALSE(valid({{"matchLabels", {{"a", "-c"}}}}));
}

TEST(NodeTerms, OneOfThemIsEnough) {
  const json zone = {{"matchExpressions", json::array({expression("zone", "In", {"z1"})})}};
  const json name = {{"matchFields", json::array({expression("metadata.name", "In", {"n2"})})}};
  EXPECT_TRUE(chooses(json::array({zone, name}), {{"zone", "z1"}}));
  EXPECT_TRUE(chooses(json::array({zone, name}), {}, "n2"));
  EXPECT_FALSE(chooses(json::array({zone, name}), {}));
}

TEST(NodeTerms, EmptyOnesMatchNothing) {
  EXPECT_FALSE(chooses(json::array(), {}));
  EXPECT_FALSE(chooses(json::array({json::object()}), {}));
}

TEST(NodeTerms, CompareWholeNumbers) {
  const auto of = [](const char* is, const char* limit) {
    return json::array({{{"matchExpressions", json::array({expression("size", is, {limit})})}}});
  };
  EXPECT_TRUE(chooses(of("Gt", "4"), {{"size", "5"}}));
  EXPECT_FALSE(chooses(of("Gt", "5"), {{"size", "5"}}));
  EXPECT_TRUE(chooses(of("Lt", "-3"), {{"size", "-4"}}) == false) << "'-3' is no value of a label";
  EXPECT_TRUE(chooses(of("Lt", "10"), {{"size", "9"}}));
  EXPECT_FALSE(chooses(of("Lt", "10"), {{"size", "small"}}));
  EXPECT_FALSE(chooses(of("Lt", "10"), {}));
  EXPECT_FALSE(chooses(of("Lt", "ten"), {{"size", "9"}}));
}

TEST(NodeTerms, KnowOnlyOneNameAtATime) {
  const auto of = [](const char* is, std::vector<std::string> names) {
    return json::array({{{"matchFields", json::array({expression("metadata.name", is, std::move(names))})}}});
  };
  EXPECT_TRUE(chooses(of("In", {"n1"}), {}));
  EXPECT_FALSE(chooses(of("NotIn", {"n1"}), {}));
  EXPECT_FALSE(chooses(of("In", {"n1", "n2"}), {}));
  EXPECT_FALSE(chooses(of("Exists", {}), {}));
  EXPECT_TRUE(chooses(of("In", {"n2"}), {}, "")) << "a volume's terms know no names";
}

TEST(QualifiedNames, MayHaveAPrefix) {
  for (const auto* name : {"a", "A.b-c_d", "nvidia.com/gpu", "x/y"})
    EXPECT_TRUE(is_qualified_name(name)) << name;
  for (const auto* name : {"", "-a", "a-", "/a", "a/", "a/b/c", "A.com/b", "a..b/c", "a b"})
    EXPECT_FALSE(is_qualified_name(name)) << name;
  EXPECT_TRUE(is_qualified_name(std::string(63, 'a')));
  EXPECT_FALSE(is_qualified_name(std::string(64, 'a')));
}

}  // namespace
}  // namespace drover::kube::scheduler

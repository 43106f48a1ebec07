#include "base/json_items.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "base/decode.h"

namespace drover {
namespace {

using nlohmann::json;

struct Read {
  Result<json> rest;
  std::vector<json> items;
};

Read read_items(const std::string& text) {
  Read read;
  read.rest = parse_json_items(text, "It", "list", [&](const json& item) { read.items.push_back(item); });
  return read;
}

RC_GTEST_PROP(JsonItems, PropertyAreThoseOfTheWholeInTheirOrder, ()) {
  const auto numbers = *rc::gen::arbitrary<std::vector<int>>();
  json list = json::array();
  for (const int number : numbers) {
    json item = {{"number", number}, {"list", {number, {{"list", {1, 2}}}}}};
    list.push_back(number % 3 == 0 ? json(number) : number % 3 == 1 ? item : json::array({item}));
  }
  json document = {{"before", {{"list", {1}}}}, {"list", list}, {"more", "x"}, {"other", {1, 2}}};
  const auto read = read_items(document.dump());
  RC_ASSERT(read.items == list.get<std::vector<json>>());
  document["list"] = json::array();
  RC_ASSERT(read.rest == document);
}

TEST(JsonItems, AreNoneWhereThereIsNoSuchList) {
  for (const auto* const text :
       {R"({"list": {"list": 1}})", R"({"list": "a"})", R"([[1], [2]])", R"({})", "7"}) {
    const auto read = read_items(text);
    EXPECT_TRUE(read.items.empty()) << text;
    EXPECT_EQ(read.rest, json::parse(text));
  }
}

TEST(JsonItems, AreRefusedAsTheWholeIs) {
  for (const auto* const text : {R"({"list": [1, )", R"({"list": [{"a": 1, "a": 2}]})", R"({"list": [1, x]})",
                                 "{\"list\": [\"\xff\"]}"}) {
    const auto read = read_items(text);
    ASSERT_FALSE(read.rest) << text;
    EXPECT_EQ(read.rest.error().message, parse_json(text, "It").error().message);
  }
}

TEST(JsonItems, AreWithoutWhatIsLeftOut) {
  const auto text =
      R"({"b": {"a": 1}, "list": [{"a": {"b": [1, {"b": {}}], "c": {"b": 2}}, "b": 3}, {"a": {"c": 4, "b": 5}}]})";
  std::vector<json> items;
  const auto rest =
      parse_json_items(text, "It", "list", [&](json& item) { items.push_back(item); }, {"a", "b"});
  EXPECT_EQ(rest, json::parse(R"({"b": {"a": 1}, "list": []})"));
  EXPECT_EQ(json(items), json::parse(R"([{"a": {"c": {"b": 2}}, "b": 3}, {"a": {"c": 4}}])"));
  EXPECT_EQ(parse_json(R"({"a": {"b": {"a": []}, "c": 1}})", "It", {"a", "b"}),
            json::parse(R"({"a": {"c": 1}})"));
  EXPECT_FALSE(parse_json(R"({"a": {"b": [x]}})", "It", {"a", "b"}));
  EXPECT_FALSE(
      parse_json(R"({"a": {"b": )" + std::string(100, '[') + std::string(100, ']') + "}}", "It", {"a", "b"}));
}

}  // namespace
}  // namespace drover

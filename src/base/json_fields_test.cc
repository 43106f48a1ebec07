#include "base/json_fields.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace drover {
namespace {

using nlohmann::ordered_json;

TEST(JsonFields, AreAsTheyStandInTheText) {
  const auto fields = json_fields(R"({"a":1,"b\"c":"x,}\"","d":{"e":[1,{"f":"]"}],"g":null},"h":[]})");
  ASSERT_EQ(fields.size(), 4U);
  EXPECT_EQ(fields[0], (std::pair<std::string_view, std::string_view>("a", "1")));
  EXPECT_EQ(fields[1].first, "b\\\"c");
  EXPECT_EQ(fields[1].second, R"("x,}\"")");
  EXPECT_EQ(fields[2].second, R"({"e":[1,{"f":"]"}],"g":null})");
  EXPECT_EQ(fields[3].second, "[]");
  EXPECT_TRUE(json_fields("{}").empty());
  EXPECT_TRUE(json_fields("").empty());
  EXPECT_TRUE(json_fields("[1]").empty());
}

RC_GTEST_PROP(JsonFieldsProperty, AreTheFieldsOfTheObject,
              (const std::map<std::string, std::string>& texts)) {
  auto object = ordered_json::object();
  for (const auto& [name, text] : texts) {
    object[name] = text;
    object[name + "list"] = {1, text, {{text, name}}};
  }
  const auto text = to_text(object);
  const auto fields = json_fields(text);
  RC_ASSERT(fields.size() == object.size());
  std::size_t index = 0;
  for (const auto& [name, value] : object.items()) {
    RC_ASSERT("\"" + std::string(fields[index].first) + "\"" == to_text(ordered_json(name)));
    RC_ASSERT(fields[index].second == to_text(value));
    ++index;
  }
}

RC_GTEST_PROP(JsonFieldsProperty, OfAnyTextGiveNoTrouble, (const std::string& text)) {
  for (const auto& [name, value] : json_fields("{\"" + text))
    RC_ASSERT(name.size() + value.size() <= text.size());
}

}  // namespace
}  // namespace drover

#include "base/json_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace drover {
namespace {

TEST(JsonText, IsAlwaysUtf8) {
  EXPECT_EQ(to_text(nlohmann::json{{"b", "\xff"}, {"a", 1}}), "{\"a\":1,\"b\":\"\xEF\xBF\xBD\"}");
  EXPECT_EQ(to_text(nlohmann::ordered_json{{"b", "\xff"}, {"a", 1}}), "{\"b\":\"\xEF\xBF\xBD\",\"a\":1}");
  EXPECT_EQ(to_text(nlohmann::json{{"a", 1}}, 2), "{\n  \"a\": 1\n}");
}

}  // namespace
}  // namespace drover

#include "api/marathon/label_selector.h"

#include <gtest/gtest.h>

namespace drover::api::marathon_v2 {
namespace {

bool selects(const char* selector, const std::map<std::string, std::string>& labels) {
  const auto rules = parse_label_selector(selector);
  if (!rules) throw std::runtime_error(rules.error().message);
  return matches(*rules, labels);
}

TEST(LabelSelector, SaysWhatLabelsMustBe) {
  const std::map<std::string, std::string> labels = {{"env", "prod"}, {"tier", "web"}, {"odd", "a,b"}};
  EXPECT_TRUE(selects("", labels));
  EXPECT_TRUE(selects("env", labels));
  EXPECT_FALSE(selects("zone", labels));
  EXPECT_TRUE(selects("env==prod", labels));
  EXPECT_TRUE(selects(" env == prod , tier==web", labels));
  EXPECT_FALSE(selects("env==prod,tier==db", labels));
  EXPECT_FALSE(selects("env!=prod", labels));
  EXPECT_TRUE(selects("zone!=a", labels));
  EXPECT_TRUE(selects("env in (test, prod)", labels));
  EXPECT_FALSE(selects("env notin (test,prod)", labels));
  EXPECT_TRUE(selects("tier notin (db)", labels));
  EXPECT_TRUE(selects("odd==a\\,b", labels));
}

TEST(LabelSelector, IsRefusedWhenItCannotBeRead) {
  for (const auto* wrong : {"==a", "a b", "a in x", "a in (x", ",", "a,,b", "a=b c"})
    EXPECT_FALSE(parse_label_selector(wrong)) << wrong;
}

}  // namespace
}  // namespace drover::api::marathon_v2

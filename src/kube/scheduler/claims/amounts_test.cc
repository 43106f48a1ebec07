#include "kube/scheduler/claims/amounts.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace drover::kube::scheduler {
namespace {

using nlohmann::json;

DeviceCapacities memory(const json& policy, const char* value = "80Gi") {
  FieldReader reader;
  auto capacity = read_capacity(reader, "memory", {{"value", value}, {"requestPolicy", policy}});
  EXPECT_TRUE(reader.status("it"));
  return {std::make_shared<const DeviceCapacity>(std::move(capacity))};
}

/// What a share takes of the memory; "none" when it is not given.
std::string taken(const char* asked, const json& policy, bool fractions = true, const char* value = "80Gi") {
  FieldReader reader;
  const json asking = asked == nullptr ? json::object() : json{{"memory", asked}};
  const auto amounts = read_amounts(reader, {{"requests", asking}}, "requests");
  const auto share = consumption(amounts, memory(policy, value), fractions);
  if (!share) return share.error().message;
  return *share ? share->value().at("memory").text : "none";
}

TEST(Consumption, IsAllOfItWithoutAPolicy) {
  EXPECT_EQ(taken(nullptr, nullptr), "80Gi");
  EXPECT_EQ(taken("10Gi", nullptr), "10Gi");
  EXPECT_EQ(taken("81Gi", nullptr), "none");
}

TEST(Consumption, IsTheNextValue) {
  const json policy{{"default", "20Gi"}, {"validValues", {"10Gi", "20Gi", "40Gi"}}};
  EXPECT_EQ(taken(nullptr, policy), "20Gi");
  EXPECT_EQ(taken("1Gi", policy), "10Gi");
  EXPECT_EQ(taken("11Gi", policy), "20Gi");
  EXPECT_EQ(taken("41Gi", policy), "none");
}

TEST(Consumption, IsRoundedUpToSteps) {
  const json policy{{"default", "10Gi"}, {"validRange", {{"min", "5Gi"}, {"max", "40Gi"}, {"step", "5Gi"}}}};
  EXPECT_EQ(taken(nullptr, policy), "10Gi");
  EXPECT_EQ(taken("1Gi", policy), "5Gi");
  EXPECT_EQ(taken("6Gi", policy), "10Gi");
  EXPECT_EQ(taken("41Gi", policy), "none");
  EXPECT_EQ(taken("7", {{"validRange", {{"min", "1"}, {"step", "3"}}}}, true, "100"), "7");
  EXPECT_EQ(taken("8", {{"validRange", {{"min", "1"}, {"step", "3"}}}}, true, "100"), "10");
  EXPECT_EQ(taken("8", {{"validRange", {{"min", "1"}}}}, true, "100"), "8");
}

TEST(Consumption, CountsFractionsWhereTheClusterDoes) {
  const json policy{{"validRange", {{"min", "100m"}, {"step", "200m"}}}};
  EXPECT_EQ(taken("200m", policy, true, "4"), "300m");
  EXPECT_EQ(taken("1200m", policy, true, "4"), "1300m");
  EXPECT_EQ(taken("1200m", policy, false, "4"), "2");
  EXPECT_NE(taken("200500u", policy, true, "4").find("cannot be rounded up"), std::string::npos);
}

TEST(Consumption, RefusesWhatIsTooLargeToCalculate) {
  const json policy{{"validRange", {{"min", "1"}, {"step", "4611686018427387904"}}}};
  EXPECT_NE(taken("9223372036854775807", policy).find("cannot be rounded up"), std::string::npos);
}

TEST(Consumption, IsOnlyOfWhatThereIs) {
  const auto share = consumption({{"cores", {1'000'000'000, "1"}}}, memory(nullptr), true);
  ASSERT_TRUE(share);
  EXPECT_FALSE(*share);
}

TEST(IsLeft, CountsWhatOthersHave) {
  const auto capacities = memory(nullptr, "3");
  const Amounts two{{"memory", {2'000'000'000, "2"}}};
  EXPECT_TRUE(is_left(two, capacities, {}));
  EXPECT_TRUE(is_left(two, capacities, {{"memory", 1'000'000'000}, {"other", 9}}));
  EXPECT_FALSE(is_left(two, capacities, {{"memory", 1'000'000'001}}));
}

TEST(ReadCapacity, RefusesNonsense) {
  for (const auto& wrong :
       {json{{"value", "much"}}, json::object(), json{{"value", "-1"}},
        json{{"value", "1"}, {"requestPolicy", {{"validRange", {{"max", "1"}}}}}},
        json{{"value", "1"}, {"requestPolicy", {{"validRange", {{"min", "1"}, {"step", "0"}}}}}},
        json{{"value", "1"}, {"requestPolicy", {{"validValues", {true}}}}}}) {
    FieldReader reader;
    read_capacity(reader, "memory", wrong);
    EXPECT_FALSE(reader.status("it")) << wrong;
  }
}

}  // namespace
}  // namespace drover::kube::scheduler

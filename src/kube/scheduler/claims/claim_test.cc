#include "kube/scheduler/claims/claim.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "kube/scheduler/claims/testing/pools.h"

namespace drover::kube::scheduler {
namespace {

using testing::claim;
using testing::gpu;
using testing::json;
using testing::request;
using testing::slice;
using testing::wish;

TEST(ReadResourceClaim, KeepsWhatASchedulerNeeds) {
  auto object = claim("c", {request("r", {{"count", 2}, {"adminAccess", true}})},
                      {{"constraints", {{{"matchAttribute", "example.com/rack"}, {"requests", {"r"}}}}},
                       {"config", {{{"opaque", {{"driver", "d"}, {"parameters", {{"a", 1}}}}}}}}});
  object["metadata"]["ownerReferences"] = {{{"uid", "x"}}, {{"uid", "pod"}, {"controller", true}}};
  object["metadata"]["annotations"] = {{"resource.kubernetes.io/extended-resource-claim", "true"}};
  object["status"] = {{"reservedFor", {{{"resource", "pods"}, {"name", "p"}, {"uid", "u"}}}}};
  object = testing::allocated(
      object, {{{"device", "gpu-0"}, {"shareID", "s"}, {"consumedCapacity", {{"m", "1Gi"}}}}});
  object["status"]["allocation"]["nodeSelector"] = {
      {"nodeSelectorTerms",
       {{{"matchFields", {{{"key", "metadata.name"}, {"operator", "In"}, {"values", {"n1"}}}}}}}}};
  const auto read = read_resource_claim(object);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->owner_uid, "pod");
  EXPECT_TRUE(read->for_extended_resources);
  EXPECT_EQ(read->reserved_for.front().uid, "u");
  EXPECT_EQ(read->spec->requests.front().wishes.front().count, 2);
  EXPECT_TRUE(read->spec->requests.front().wishes.front().admin);
  EXPECT_EQ(read->spec->constraints.front().attribute, "example.com/rack");
  EXPECT_EQ(read->spec->configs.front().config.parameters, R"({"a":1})");
  const auto& device = read->allocation->devices.front();
  EXPECT_EQ(device.share_id, "s");
  EXPECT_EQ(device.consumed.at("m").text, "1Gi");
  EXPECT_TRUE(is_available_on(*read->allocation, {.name = "n1"}));
  EXPECT_FALSE(is_available_on(*read->allocation, {.name = "n2"}));
}

TEST(ReadResourceClaim, RefusesNonsense) {
  for (const auto& wrong :
       {json::object(), claim("", {}), claim("c", {}, {{"requests", 1}}), claim("c", {request("")}),
        claim("c", {request("r", {{"count", 0}})}), claim("c", {request("r", {{"count", "1"}})}),
        claim("c", {{{"name", "r"}, {"exactly", wish()}, {"firstAvailable", json::array({wish()})}}}),
        claim("c", {request("r", {{"capacity", {{"requests", {{"m", true}}}}}})})}) {
    const auto read = read_resource_claim(wrong);
    ASSERT_FALSE(read) << wrong;
    EXPECT_EQ(read.error().kind, ErrorKind::kInvalid);
    EXPECT_TRUE(read.error().message.starts_with("the ResourceClaim '")) << read.error().message;
  }
}

TEST(ReadResourceClaim, NamesWhatWeDoNotDecideOn) {
  const auto why = [](const testing::List& requests, const json& more = json::object()) {
    return read_resource_claim(claim("c", requests, more))->spec->unsupported;
  };
  EXPECT_EQ(why({request("r")}), "");
  EXPECT_EQ(why({{{"name", "r"}}}), "asks in a way that is not known here");
  EXPECT_EQ(why({request("r", {{"allocationMode", "Some"}})}), "uses the allocation mode 'Some'");
  EXPECT_EQ(why({request("r", {{"selectors", {{{"rego", "x"}}}}})}),
            "uses a selector that is not written in CEL");
  EXPECT_EQ(why({request("r", {{"derivedAttributes", {{{"name", "a"}}}}})}),
            "uses derived attributes, which are calculated from others");
  EXPECT_EQ(why({request("r")}, {{"constraints", {{{"minimum", "a"}}}}}),
            "uses a constraint of a kind that is not known here");
}

TEST(ReadResourceSlice, RefusesNonsense) {
  const auto with = [](const json& device) { return slice("s", {device}); };
  for (const auto& wrong :
       {json::object(), slice("", {}), slice("s", {}, {{"driver", ""}}), slice("s", {}, {{"pool", 1}}),
        slice("s", {}, {{"pool", {{"generation", -1}}}}),
        slice("s", {}, {{"pool", {{"resourceSliceCount", 0}}}}), with(gpu("")),
        with(gpu("g", {{"attributes", {{"a", {{"float", 1.5}}}}}})),
        with(gpu("g", {{"attributes", {{"a", {{"int", "1"}}}}}})),
        with(gpu("g", {{"attributes", {{"a", {{"ints", {1, "2"}}}}}}})),
        with(gpu("g",
                 {{"consumesCounters", {{{"counterSet", "a"}, {"counters", {{"x", {{"size", "1"}}}}}}}}})),
        slice("s", testing::gpus(129))}) {
    const auto read = read_resource_slice(wrong);
    ASSERT_FALSE(read) << wrong;
    EXPECT_TRUE(read.error().message.starts_with("the ResourceSlice '")) << read.error().message;
  }
}

TEST(ReadResourceSlice, KnowsAllKindsOfAttributes) {
  const auto read = read_resource_slice(slice("s", {gpu("g", {{"attributes",
                                                               {{"a", {{"bool", true}}},
                                                                {"b", {{"version", "1.2.3"}}},
                                                                {"gpu.example.com/c", {{"int", 7}}},
                                                                {"d", {{"strings", {"x", "y"}}}},
                                                                {"e", {{"versions", {"1.0.0"}}}}}}})}));
  ASSERT_TRUE(read) << read.error().message;
  const auto& kind = *read->devices.front().kind;
  EXPECT_EQ(*attribute(kind, "gpu.example.com/a"), cel::Attribute(true));
  EXPECT_EQ(*attribute(kind, "gpu.example.com/b"), cel::Attribute(cel::Version{"1.2.3"}));
  EXPECT_EQ(*attribute(kind, "gpu.example.com/c"), cel::Attribute(std::int64_t{7}));
  EXPECT_EQ(*attribute(kind, "gpu.example.com/d"), cel::Attribute(std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(attribute(kind, "other.example.com/a"), nullptr);
  EXPECT_EQ(attribute(kind, "gpu.example.com/z"), nullptr);
}

TEST(ToJson, IsWhatAnApiServerTakes) {
  ClaimAllocation allocation;
  allocation.devices.push_back({"r", {"d", "p", "x"}, true, R"([{"operator":"Exists"}])", "", {}});
  allocation.devices.push_back({"r", {"d", "p", "y"}, false, "", "id", {{"memory", {1, "1Gi"}}}});
  allocation.configs = {{true, {"r"}, {"d", R"({"a":1})"}}, {false, {}, {"d", "null"}}};
  allocation.nodes = NodeTerms{
      {true, {{"zone", LabelOperator::kIn, {"a"}}}, {{"metadata.name", LabelOperator::kIn, {"n"}}}}};
  EXPECT_EQ(to_json(allocation, "2026-01-02T03:04:05Z"), json::parse(R"({
    "allocationTimestamp": "2026-01-02T03:04:05Z",
    "devices": {
      "results": [
        {"request": "r", "driver": "d", "pool": "p", "device": "x", "adminAccess": true, "tolerations": [{"operator": "Exists"}]},
        {"request": "r", "driver": "d", "pool": "p", "device": "y", "shareID": "id", "consumedCapacity": {"memory": "1Gi"}}],
      "config": [{"source": "FromClass", "requests": ["r"], "opaque": {"driver": "d", "parameters": {"a": 1}}},
                 {"source": "FromClaim", "opaque": {"driver": "d", "parameters": null}}]},
    "nodeSelector": {"nodeSelectorTerms": [{
      "matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}],
      "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}]}})"));
  EXPECT_EQ(to_json({}, ""), json::parse(R"({"devices": {"results": []}})"));
}

TEST(ReadDeviceTaintRule, KnowsForWhich) {
  const json rule{
      {"metadata", {{"name", "r"}}},
      {"spec", {{"deviceSelector", {{"driver", "d"}}}, {"taint", {{"key", "k"}, {"effect", "NoExecute"}}}}}};
  const auto read = read_device_taint_rule(rule);
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->selects);
  EXPECT_EQ(read->driver, "d");
  EXPECT_FALSE(read->pool || read->device);
  EXPECT_EQ(read->taint.effect, "NoExecute");
  EXPECT_FALSE(read_device_taint_rule({{"metadata", {{"name", "r"}}}})->selects);
  EXPECT_FALSE(read_device_taint_rule(
      {{"metadata", {{"name", "r"}}}, {"spec", {{"deviceSelector", {{"driver", 1}}}}}}));
}

}  // namespace
}  // namespace drover::kube::scheduler

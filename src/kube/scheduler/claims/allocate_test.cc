#include "kube/scheduler/claims/allocate.h"

#include <gtest/gtest.h>

#include <set>

#include "kube/scheduler/claims/testing/pools.h"

namespace drover::kube::scheduler {
namespace {

using testing::allocated;
using testing::claim;
using testing::gpu;
using testing::gpus;
using testing::json;
using testing::request;
using testing::selected_by;
using testing::slice;
using testing::TestCluster;
using testing::wish;

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

json attribute_of(const char* name, const json& value) {
  return {{"attributes", {{name, value}}}};
}

TEST(Allocate, GivesTheFirstFreeDevices) {
  TestCluster cluster({slice("s", gpus(3))});
  EXPECT_EQ(cluster.given({claim("a", {request("r", {{"count", 2}})}), claim("b", {request("r")})}),
            "gpu-0 gpu-1; gpu-2");
  cluster.put_claim(allocated(claim("old", {request("r")}), {{{"device", "gpu-1"}}}));
  EXPECT_EQ(cluster.given({claim("a", {request("r", {{"count", 2}})})}), "gpu-0 gpu-2");
  EXPECT_EQ(cluster.given({claim("a", {request("r", {{"count", 3}})})}),
            "its ResourceClaim: the request 'r': devices that match are taken");
  EXPECT_EQ(cluster.given({claim("a", {request("r", {{"count", 4}})})}),
            "its ResourceClaim: the request 'r': too few devices match");
  cluster.node.name = "n2";
  EXPECT_EQ(cluster.given({claim("a", {request("r")})}),
            "its ResourceClaim: the request 'r': no device matches");
}

TEST(Allocate, GoesBackWhereItCannotGoOn) {
  const TestCluster cluster(
      {slice("s", {gpu("both"), gpu("one", attribute_of("model", {{"string", "h100"}}))})});
  const auto only_a100 = selected_by("device.attributes['gpu.example.com'].model == 'a100'");
  EXPECT_EQ(cluster.given({claim("a", {request("any")}), claim("b", {request("r", only_a100)})}),
            "one; both");
}

TEST(Allocate, TakesTheFirstWishThatCanBeHad) {
  const TestCluster cluster({slice("s", gpus(2))});
  const auto of = [](int first, int second) {
    return json{{"name", "r"},
                {"firstAvailable",
                 {wish({{"name", "many"}, {"count", first}}), wish({{"name", "few"}, {"count", second}})}}};
  };
  const auto wanted = [&](const testing::List& requests) {
    const auto found = cluster.allocate({claim("a", requests)});
    return found && found->fits() ? found->allocations.front().devices.front().request : "";
  };
  EXPECT_EQ(wanted({of(2, 1)}), "r/many");
  EXPECT_EQ(wanted({of(3, 1)}), "r/few");
  EXPECT_EQ(wanted({of(2, 1), request("other")}), "r/few");
  EXPECT_EQ(wanted({of(33, 2)}), "r/few");
  EXPECT_EQ(wanted({of(3, 4)}), "");
}

TEST(Allocate, AllMeansEachThatMatches) {
  TestCluster cluster({slice("s", gpus(3))});
  const json all{{"allocationMode", "All"}};
  EXPECT_EQ(cluster.given({claim("a", {request("r", all)})}), "gpu-0 gpu-1 gpu-2");
  EXPECT_TRUE(has(cluster.given({claim("a", {request("q"), request("r", all)})}), "do not go together"));
  json none = all;
  none.update(selected_by("false"));
  EXPECT_TRUE(has(cluster.given({claim("a", {request("r", none)})}), "no device matches"));
  cluster.put_claim(allocated(claim("old", {request("r")}), {{{"device", "gpu-1"}}}));
  EXPECT_TRUE(has(cluster.given({claim("a", {request("r", all)})}), "devices that match are taken"));
  cluster.put(slice("s", gpus(33)));
  EXPECT_TRUE(has(cluster.given({claim("a", {request("r", all)})}), "wants more than the 32 devices"));
}

TEST(Allocate, GivesNoClaimMoreThan32) {
  const TestCluster cluster({slice("s", gpus(70))});
  EXPECT_EQ(
      cluster.allocate({claim("a", {request("r", {{"count", 32}})})})->allocations.front().devices.size(),
      32);
  const auto too_many =
      cluster.allocate({claim("a", {request("q", {{"count", 20}}), request("r", {{"count", 13}})})});
  EXPECT_TRUE(has(too_many.error().message, "it wants more than the 32 devices that a claim may have"));
  EXPECT_TRUE(cluster
                  .allocate({claim("a", {request("r", {{"count", 20}})}),
                             claim("b", {request("r", {{"count", 20}})})})
                  ->fits());
}

TEST(Allocate, AFailingSelectorEndsTheAllocation) {
  const auto picky = selected_by("device.attributes['gpu.example.com'].rare == 1");
  TestCluster cluster({slice("s", {gpu("g0", attribute_of("rare", {{"int", 1}})), gpu("g1")})});
  EXPECT_EQ(cluster.given({claim("a", {request("r", picky)})}), "g0") << "the second is not come to";
  cluster.options.first = {{"gpu.example.com", "n1", "g1"}};
  EXPECT_EQ(cluster.given({claim("a", {request("r", picky)})}), "g0") << "nor when it is wished for";
  cluster.options.first.clear();
  const auto failed = cluster.allocate({claim("a", {request("r", [&] {
                                                auto two = picky;
                                                two["count"] = 2;
                                                return two;
                                              }())})});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().kind, ErrorKind::kInvalid);
  EXPECT_TRUE(has(failed.error().message, "gpu.example.com/n1/g1")) << failed.error().message;
  EXPECT_TRUE(has(cluster.given({claim("a", {request("r", selected_by("device.x ="))})}), "error: "));
  cluster.put_class({{"selectors", picky["selectors"]}});
  EXPECT_TRUE(has(cluster.given({claim("a", {request("r", {{"count", 2}})})}), "DeviceClass 'gpu'"));
}

TEST(Allocate, KnowsTheClass) {
  const TestCluster cluster({slice("s", gpus(1))});
  const auto found = cluster.allocate({claim("a", {request("r", {{"deviceClassName", "tpu"}})})});
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind, ErrorKind::kNotFound);
  EXPECT_EQ(found.error().message, "its ResourceClaim: the request 'r': there is no DeviceClass 'tpu'");
}

json matching(const char* name, const json& requests = json::array()) {
  json constraint = {{"matchAttribute", name}};
  if (!requests.empty()) constraint["requests"] = requests;
  return {{"constraints", json::array({constraint})}};
}

TEST(Allocate, DevicesHaveAnAttributeInCommon) {
  auto devices = gpus(5);
  for (const auto i : {1, 3, 4}) devices[i]["attributes"]["numa"] = {{"int", 1}};
  devices[0]["attributes"].erase("numa");
  const TestCluster cluster({slice("s", devices)});
  const auto numa = matching("gpu.example.com/numa");
  EXPECT_EQ(cluster.given({claim("a", {request("r", {{"count", 3}})}, numa)}), "gpu-1 gpu-3 gpu-4");
  EXPECT_EQ(cluster.given({claim("a", {request("q"), request("r", {{"count", 2}})},
                                 matching("gpu.example.com/numa", {"r"}))}),
            "gpu-0 gpu-1 gpu-3");
  EXPECT_TRUE(has(cluster.given({claim("a", {request("r", {{"count", 4}})}, numa)}), "do not go together"));
  EXPECT_EQ(cluster.given({claim("a", {request("r")}, matching("gpu.example.com/none"))}),
            "its ResourceClaim: the request 'r': free devices that match do not go together, or lack "
            "capacity");
}

TEST(Allocate, ListsMatchInOneOfTheirValues) {
  const auto with = [](const char* name, const json& values) {
    return gpu(name, attribute_of("net", {{"strings", values}}));
  };
  const TestCluster cluster(
      {slice("s", {with("a", {"x", "y"}), with("b", {"x"}), with("c", {"y", "z"}), with("d", {"x", "z"})})});
  const auto of = [](int count, const char* kind) {
    return claim("c", {request("r", {{"count", count}})},
                 {{"constraints", {{{kind, "gpu.example.com/net"}}}}});
  };
  EXPECT_EQ(cluster.given({of(3, "matchAttribute")}), "a b d");
  EXPECT_EQ(cluster.given({of(2, "distinctAttribute")}), "b c");
}

TEST(Allocate, DevicesHaveAnAttributeForThemselves) {
  auto devices = gpus(3);
  devices[2]["attributes"]["numa"] = {{"int", 1}};
  const TestCluster cluster({slice("s", devices)});
  const json apart{{"constraints", {{{"distinctAttribute", "gpu.example.com/numa"}}}}};
  EXPECT_EQ(cluster.given({claim("a", {request("r", {{"count", 2}})}, apart)}), "gpu-0 gpu-2");
  EXPECT_TRUE(has(cluster.given({claim("a", {request("r", {{"count", 3}})}, apart)}), "do not go together"));
}

TEST(Allocate, WhatOneConstraintRefusesTheOthersForget) {
  auto devices = gpus(3);
  devices[1]["attributes"] = {{"numa", {{"int", 1}}}, {"model", {{"string", "h100"}}}};
  devices[2]["attributes"]["numa"] = {{"int", 1}};
  const TestCluster cluster({slice("s", devices)});
  const json both = {
      {"constraints",
       {{{"distinctAttribute", "gpu.example.com/numa"}}, {{"matchAttribute", "gpu.example.com/model"}}}}};
  EXPECT_EQ(cluster.given({claim("a", {request("r", {{"count", 2}})}, both)}), "gpu-0 gpu-2");
}

TEST(Allocate, TaintsKeepDevicesAway) {
  const auto tainted = [](const char* name, const char* effect) {
    return gpu(name, {{"taints", {{{"key", "sick"}, {"value", "very"}, {"effect", effect}}}}});
  };
  TestCluster cluster(
      {slice("s", {tainted("a", "NoSchedule"), tainted("b", "NoExecute"), tainted("c", "None")})});
  EXPECT_EQ(cluster.given({claim("a", {request("r")})}), "c");
  EXPECT_TRUE(
      has(cluster.given({claim("a", {request("r", {{"count", 2}})})}), "taints that it does not tolerate"));
  const json tolerating{{"tolerations", {{{"key", "sick"}, {"value", "very"}}}}};
  EXPECT_EQ(cluster.given({claim("a", {request("r", tolerating)})}), "a");
  EXPECT_EQ(cluster.allocate({claim("a", {request("r", tolerating)})})
                ->allocations.front()
                .devices.front()
                .tolerations_json,
            tolerating["tolerations"].dump());
  cluster.pools.put_taint_rule(
      {"rule", true, "gpu.example.com", std::nullopt, "c", {"sick", "very", "NoSchedule"}});
  EXPECT_TRUE(has(cluster.given({claim("a", {request("r")})}), "taints that it does not tolerate"));
  cluster.pools.put_taint_rule({"rule", false, {}, {}, {}, {"sick", "very", "NoSchedule"}});
  EXPECT_EQ(cluster.given({claim("a", {request("r")})}), "c");
  cluster.pools.put_taint_rule({"rule", true, {}, "n1", {}, {"all", "", "NoSchedule"}});
  EXPECT_TRUE(has(cluster.given({claim("a", {request("r", tolerating)})}), "taints"));
  cluster.pools.remove_taint_rule("rule");
  EXPECT_EQ(cluster.given({claim("a", {request("r")})}), "c");
}

TEST(Allocate, AdministratorsHaveWhatOthersHave) {
  TestCluster cluster({slice("s", gpus(1))});
  cluster.put_claim(allocated(claim("old", {request("r")}), {{{"device", "gpu-0"}}}));
  const auto admin = claim("a", {request("r", {{"adminAccess", true}})});
  const auto refused = cluster.allocate({admin});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kPermissionDenied);
  cluster.options.admin_access = true;
  EXPECT_EQ(cluster.given({admin}), "gpu-0");
  EXPECT_TRUE(cluster.allocate({admin})->allocations.front().devices.front().admin);
  EXPECT_TRUE(
      has(cluster.given({claim("a", {request("r", {{"adminAccess", true}, {"count", 2}})})}), "too few"));
  cluster.put_claim(allocated(claim("old", {request("r")}), {{{"device", "gpu-0"}, {"adminAccess", true}}}));
  EXPECT_EQ(cluster.given({claim("a", {request("r")})}), "gpu-0");
}

json partition(const char* name, const char* slices) {
  return gpu(name, {{"consumesCounters",
                     {{{"counterSet", "card"}, {"counters", {{"slices", {{"value", slices}}}}}}}}});
}
json counters(const char* slices) {
  return slice("counters", {},
               {{"sharedCounters", {{{"name", "card"}, {"counters", {{"slices", {{"value", slices}}}}}}}},
                {"pool", {{"resourceSliceCount", 2}}}});
}
const json kOfTwo{{"pool", {{"resourceSliceCount", 2}}}};

TEST(Allocate, PartitionsShareCounters) {
  TestCluster cluster({counters("4"), slice("s",
                                            {partition("whole", "4"), partition("half", "2"),
                                             partition("other", "2"), partition("third", "1")},
                                            kOfTwo)});
  EXPECT_EQ(cluster.given({claim("a", {request("r")})}), "whole");
  EXPECT_EQ(cluster.given({claim("a", {request("r", {{"count", 2}})})}), "half other");
  EXPECT_TRUE(has(cluster.given({claim("a", {request("r", {{"count", 3}})})}), "lack capacity"));
  cluster.put_claim(allocated(claim("old", {request("r")}), {{{"device", "other"}}}));
  EXPECT_EQ(cluster.given({claim("a", {request("r")})}), "half");
  EXPECT_EQ(cluster.given({claim("a", {request("q"), request("r", selected_by("true"))})}),
            "its ResourceClaim: the request 'r': free devices that match do not go together, or lack "
            "capacity");
  cluster.pools.remove_claim("uid-old");
  EXPECT_EQ(cluster.given({claim("a", {request("r")})}), "whole");
}

TEST(Allocate, DevicesAreShared) {
  const json shared{{"allowMultipleAllocations", true}};
  TestCluster cluster({slice("s", {gpu("g", shared)})});
  const json ten{{"capacity", {{"requests", {{"memory", "30Gi"}}}}}};
  const auto found = cluster.allocate({claim("a", {request("q", ten), request("r", ten)})});
  ASSERT_TRUE(found && found->fits());
  const auto& devices = found->allocations.front().devices;
  ASSERT_EQ(devices.size(), 2);
  EXPECT_EQ(devices[0].consumed.at("memory").text, "30Gi");
  EXPECT_NE(devices[0].share_id, devices[1].share_id);
  EXPECT_EQ(devices[0].share_id.size(), 36);
  EXPECT_TRUE(has(cluster.given({claim("a", {request("p", ten), request("q", ten), request("r", ten)})}),
                  "lack capacity"));
  cluster.put_claim(
      allocated(claim("old", {request("r")}),
                {{{"device", "g"}, {"shareID", "x"}, {"consumedCapacity", {{"memory", "50Gi"}}}}}));
  EXPECT_EQ(cluster.given({claim("a", {request("r", ten)})}), "g");
  EXPECT_TRUE(has(cluster.given({claim("a", {request("q", ten), request("r", ten)})}), "lack capacity"));
  EXPECT_TRUE(has(cluster.given({claim("a", {request("r")})}), "lack capacity"))
      << "who asks for nothing takes all";
  cluster.put_claim(allocated(claim("old", {request("r")}), {{{"device", "g"}}}));
  EXPECT_TRUE(has(cluster.given({claim("a", {request("r", ten)})}), "are taken"));
}

TEST(Allocate, WhoeverSharesItFirstTakesTheCounters) {
  auto shared = partition("g", "4");
  shared["allowMultipleAllocations"] = true;
  const TestCluster cluster({counters("4"), slice("s", {shared, partition("h", "1")}, kOfTwo)});
  const json some{{"capacity", {{"requests", {{"memory", "20Gi"}}}}}};
  EXPECT_EQ(cluster.given({claim("a", {request("q", some), request("r", some)})}), "g g");
  EXPECT_TRUE(has(cluster.given({claim("a", {request("q", some), request("r")})}), "lack capacity"));
}

TEST(Allocate, GivesNoMoreThanADeviceHas) {
  const TestCluster cluster(
      {slice("s", {gpu("small", {{"capacity", {{"memory", {{"value", "40Gi"}}}}}}), gpu("large")})});
  EXPECT_EQ(cluster.given({claim("a", {request("r", {{"capacity", {{"requests", {{"memory", "50Gi"}}}}}})})}),
            "large");
  EXPECT_TRUE(
      has(cluster.given({claim("a", {request("r", {{"capacity", {{"requests", {{"cores", "1"}}}}}})})}),
          "no device matches"));
}

TEST(Allocate, SaysWhatItDoesNotSupport) {
  TestCluster cluster({slice("s", {gpu("g", {{"bindingConditions", {"ready"}}})})});
  EXPECT_EQ(cluster.given({claim("a", {request("r")})}),
            "its ResourceClaim: the request 'r': a device that matches uses binding conditions, "
            "which a "
            "pod would have to wait for before it is bound");
  EXPECT_TRUE(has(cluster.given({claim("a", {request("r", {{"allocationMode", "All"}})})}),
                  "one of them uses binding"));
  const auto refused =
      cluster.allocate({claim("a", {request("r", {{"derivedAttributes", {{{"name", "a"}}}}})})});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kUnsupported);
  auto grouped = partition("g", "1");
  grouped["consumesCounters"][0]["compatibilityGroups"] = {"a"};
  cluster.put(counters("4"));
  cluster.put(slice("s", {grouped}, kOfTwo));
  EXPECT_TRUE(has(cluster.given({claim("a", {request("r")})}), "uses compatibility groups"));
}

TEST(Allocate, TakesTheWishedSetWheneverItCan) {
  auto devices = gpus(6);
  devices[5]["attributes"]["model"] = {{"string", "h100"}};
  TestCluster cluster({slice("s", devices)});
  const auto first = [&](std::vector<std::string> names) {
    cluster.options.first.clear();
    for (auto& name : names) cluster.options.first.push_back({"gpu.example.com", "n1", std::move(name)});
  };
  first({"gpu-4", "gpu-2"});
  EXPECT_EQ(cluster.given({claim("a", {request("r", {{"count", 2}})})}), "gpu-4 gpu-2");
  EXPECT_EQ(cluster.given({claim("a", {request("r", {{"count", 3}})})}), "gpu-4 gpu-2 gpu-0");
  // Not the first one to the first request, since only it does for the second.
  first({"gpu-5", "gpu-3"});
  const auto h100 = selected_by("device.attributes['gpu.example.com'].model == 'h100'");
  EXPECT_EQ(cluster.given({claim("a", {request("q"), request("r", h100)})}), "gpu-3 gpu-5");
  first({"unknown", "gpu-5", "gpu-5"});
  EXPECT_EQ(cluster.given({claim("a", {request("r", {{"count", 2}})})}), "gpu-5 gpu-0");
}

TEST(Allocate, TheOrderOfWishesComesBeforeThatOfDevices) {
  TestCluster cluster({slice("s", gpus(4))});
  const json either{{"name", "r"},
                    {"firstAvailable", {wish({{"name", "two"}, {"count", 2}}), wish({{"name", "one"}})}}};
  cluster.options.first = {{"gpu.example.com", "n1", "gpu-3"}};
  EXPECT_EQ(cluster.given({claim("a", {either})}), "gpu-3 gpu-0");
  cluster.put_claim(allocated(claim("old", {request("r")}),
                              {{{"device", "gpu-0"}}, {{"device", "gpu-1"}}, {{"device", "gpu-2"}}}));
  EXPECT_EQ(cluster.given({claim("a", {either})}), "gpu-3");
}

TEST(Allocate, CopiesConfigurations) {
  TestCluster cluster({slice("s", gpus(4))});
  const json opaque{{"driver", "d"}, {"parameters", {{"a", 1}}}};
  cluster.put_class({{"config", {{{"opaque", opaque}}}}});
  cluster.put_class(json::object(), "other");
  const auto config = [&](const json& requests) { return json{{"requests", requests}, {"opaque", opaque}}; };
  const auto found = cluster.allocate({claim(
      "a",
      {request("q"),
       request("r", {{"deviceClassName", "other"}}),
       {{"name", "s"}, {"firstAvailable", {wish({{"name", "no"}, {"count", 9}}), wish({{"name", "yes"}})}}}},
      {{"config",
        {config(json::array()), config({"q"}), config({"s/no"}), config({"s/yes"}),
         config({"q", "r", "s"})}}})});
  ASSERT_TRUE(found && found->fits());
  std::vector<std::pair<bool, std::vector<std::string>>> configs;
  for (const auto& copied : found->allocations.front().configs)
    configs.emplace_back(copied.from_class, copied.requests);
  EXPECT_EQ(configs,
            (std::vector<std::pair<bool, std::vector<std::string>>>{
                {true, {"q", "s/yes"}}, {false, {}}, {false, {"q"}}, {false, {"s/yes"}}, {false, {}}}));
}

TEST(Allocate, SaysOnWhichNodesTheDevicesAre) {
  const json zone{{"nodeSelectorTerms",
                   {{{"matchExpressions", {{{"key", "zone"}, {"operator", "In"}, {"values", {"a"}}}}}}}}};
  const auto nodes = [](const TestCluster& cluster, int count) {
    return to_json(cluster.allocate({claim("a", {request("r", {{"count", count}})})})->allocations.front(),
                   "")["nodeSelector"];
  };
  const json here{
      {"nodeSelectorTerms",
       {{{"matchFields", {{{"key", "metadata.name"}, {"operator", "In"}, {"values", {"n1"}}}}}}}}};
  EXPECT_EQ(nodes(TestCluster({slice("s", gpus(1))}), 1), here);
  EXPECT_EQ(nodes(TestCluster({slice("s", gpus(1), {{"nodeName", nullptr}, {"allNodes", true}})}), 1),
            nullptr);
  EXPECT_EQ(nodes(TestCluster({slice("s", gpus(2), {{"nodeName", nullptr}, {"nodeSelector", zone}})}), 2),
            zone);
  EXPECT_EQ(nodes(TestCluster({slice("s", {gpu("g", {{"bindsToNode", true}})},
                                     {{"nodeName", nullptr}, {"allNodes", true}})}),
                  1),
            here);
  const TestCluster each({slice("s", {gpu("g", {{"nodeName", "n2"}}), gpu("h", {{"nodeSelector", zone}})},
                                {{"nodeName", nullptr}, {"perDeviceNodeSelection", true}})});
  EXPECT_EQ(each.given({claim("a", {request("r")})}), "h");
  EXPECT_EQ(nodes(each, 1), zone);
}

TEST(Allocate, GivesUpAfterSoManyTries) {
  auto devices = gpus(24);
  for (std::size_t i = 0; i < devices.size(); ++i) devices[i]["attributes"]["numa"] = {{"int", i % 3}};
  TestCluster cluster({slice("s", devices)});
  testing::List wanted;
  for (int i = 0; i < 8; ++i)
    wanted.push_back(
        claim("c" + std::to_string(i), {request("r", {{"count", 3}})}, matching("gpu.example.com/numa")));
  wanted[7] = claim("c7", {request("r", {{"count", 4}})}, matching("gpu.example.com/numa"));
  cluster.options.most_tries = 100;
  EXPECT_EQ(cluster.given(wanted), "no devices were found within 100 tries");
}

TEST(Allocate, DoesNotTryWhatIsAsGoodAsSomethingTried) {
  // 16 equal devices, of which no five have a counter left: without, there are thousands of ways to fail.
  testing::List devices;
  for (int i = 0; i < 16; ++i) devices.push_back(partition(("p" + std::to_string(i)).c_str(), "1"));
  TestCluster cluster({counters("7"), slice("s", devices, kOfTwo)});
  cluster.options.most_tries = 200;
  EXPECT_TRUE(has(cluster.given({claim("a", {request("r", {{"count", 8}})})}), "lack capacity"));
}

TEST(Allocate, NamesTheClaimThatCannotBeHadAlone) {
  auto devices = gpus(12);
  for (std::size_t i = 0; i < devices.size(); ++i) devices[i]["attributes"]["numa"] = {{"int", i}};
  TestCluster cluster({slice("s", devices)});
  cluster.options.most_tries = 300;
  const auto said =
      cluster.given({claim("a", {request("r", {{"count", 5}})}),
                     claim("b", {request("r", {{"count", 2}})}, matching("gpu.example.com/numa"))});
  EXPECT_EQ(said,
            "its ResourceClaim 2 of 2: the request 'r': free devices that match do not go together, or "
            "lack capacity");
}

TEST(EligibleDevices, AreThoseThatEachWishCouldHave) {
  auto devices = gpus(4);
  devices[1]["taints"] = {{{"key", "sick"}, {"effect", "NoSchedule"}}};
  devices[2]["attributes"]["model"] = {{"string", "h100"}};
  TestCluster cluster({slice("s", devices)});
  cluster.put_claim(allocated(claim("old", {request("r")}), {{{"device", "gpu-0"}}}));
  auto h100 = wish(selected_by("device.attributes['gpu.example.com'].model == 'h100'"));
  h100["name"] = "h100";
  const json either = {{"name", "r"}, {"firstAvailable", json::array({h100})}};
  const auto object = claim("a", {request("q", {{"count", 2}}), either});
  const auto read = read_resource_claim(object);
  const auto eligible = eligible_devices(cluster.pools, cluster.node, {&*read});
  ASSERT_TRUE(eligible);
  ASSERT_EQ(eligible->size(), 1);
  const auto& wishes = eligible->front();
  ASSERT_EQ(wishes.size(), 2);
  EXPECT_EQ(wishes[0].request, "q");
  EXPECT_EQ(wishes[0].count, 2);
  ASSERT_EQ(wishes[0].devices.size(), 2);
  EXPECT_EQ(wishes[0].devices[0].device, "gpu-2");
  EXPECT_EQ(wishes[1].request, "r/h100");
  ASSERT_EQ(wishes[1].devices.size(), 1);
  EXPECT_EQ(wishes[1].devices[0].device, "gpu-2");
}

}  // namespace
}  // namespace drover::kube::scheduler

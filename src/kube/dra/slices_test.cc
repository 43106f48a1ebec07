#include "kube/dra/slices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "kube/dra/publisher.h"
#include "kube/dra/testing/fake_slices.h"

namespace drover::kube::dra {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<json> some_devices(int from, int to) {
  std::vector<json> devices;
  for (int i = from; i < to; ++i)
    devices.push_back({{"name", "gpu-" + std::to_string(i)},
                       {"attributes", {{"uuid", {{"string", "GPU-" + std::to_string(i)}}}}}});
  return devices;
}

std::set<std::string> names_of(const std::vector<json>& devices) {
  std::set<std::string> names;
  for (const auto& device : devices) names.insert(device["name"]);
  return names;
}

class Slices : public ::testing::Test {
 protected:
  std::shared_ptr<FakeSlices> api = std::make_shared<FakeSlices>();
  Publisher publisher{api, "gpu.nvidia.com", "node1"};
};

TEST_F(Slices, SayWhoseTheyAre) {
  ASSERT_EQ(publisher.publish({some_devices(0, 2), {}}), true);
  ASSERT_EQ(api->slices.size(), 1U);
  auto slice = api->slices.begin()->second;
  EXPECT_EQ(slice["metadata"]["name"], "node1-gpu.nvidia.com-0");
  EXPECT_EQ(slice["metadata"]["ownerReferences"][0]["uid"], "node-uid");
  slice["spec"].erase("devices");
  EXPECT_EQ(slice["spec"],
            json({{"driver", "gpu.nvidia.com"},
                  {"nodeName", "node1"},
                  {"pool", {{"name", "node1"}, {"generation", 1}, {"resourceSliceCount", 1}}}}));
}

TEST_F(Slices, AreWrittenOnlyWhenSomethingChanged) {
  ASSERT_EQ(publisher.publish({some_devices(0, 8), {}}), true);
  EXPECT_EQ(publisher.publish({some_devices(0, 8), {}}), false);
  // Another process, after a restart, sees no difference either.
  Publisher next(api, "gpu.nvidia.com", "node1");
  EXPECT_EQ(next.publish({some_devices(0, 8), {}}), false);
  EXPECT_EQ(api->writes, 1);
}

TEST_F(Slices, OneIsChangedInItsPlace) {
  ASSERT_TRUE(publisher.publish({some_devices(0, 100), {}}));
  auto devices = some_devices(0, 100);
  devices[70]["taints"] = json::array({{{"key", "gpu.nvidia.com/xid"}, {"effect", "NoSchedule"}}});
  api->writes = 0;
  ASSERT_TRUE(publisher.publish({devices, {}}));
  EXPECT_EQ(api->writes, 1);
  for (const auto& [name, slice] : api->slices) EXPECT_EQ(slice["spec"]["pool"]["generation"], 1);
}

TEST_F(Slices, GrowAndShrinkByGenerations) {
  ASSERT_TRUE(publisher.publish({some_devices(0, 100), {}}));
  ASSERT_TRUE(publisher.publish({some_devices(0, 3), {}}));
  ASSERT_EQ(api->slices.size(), 1U);
  EXPECT_EQ(api->slices.begin()->second["spec"]["pool"]["generation"], 2);
  ASSERT_TRUE(publisher.publish({}));
  EXPECT_EQ(api->pool(), std::set<std::string>());
}

TEST_F(Slices, OfAnotherDriverOfTheSameNameMakeRoom) {
  api->slices["node1-gpu.nvidia.com-x7w2k"] = {
      {"metadata", {{"name", "node1-gpu.nvidia.com-x7w2k"}, {"resourceVersion", "1"}}},
      {"spec",
       {{"pool", {{"name", "node1"}, {"generation", 5}, {"resourceSliceCount", 1}}},
        {"devices", some_devices(0, 9)}}}};
  ASSERT_TRUE(publisher.publish({some_devices(0, 2), {}}));
  ASSERT_EQ(api->slices.size(), 1U);
  EXPECT_EQ(api->slices.begin()->second["spec"]["pool"]["generation"], 6);
}

TEST_F(Slices, AreNotWrittenAgainAndAgainWhereTheServerDropsFields) {
  api->unknown_fields = {"taints"};
  auto devices = some_devices(0, 2);
  devices[1]["taints"] = json::array({{{"key", "gpu.nvidia.com/xid"}, {"effect", "NoSchedule"}}});
  ASSERT_EQ(publisher.publish({devices, {}}), true);
  EXPECT_THAT(publisher.dropped(), ElementsAre("taints"));
  EXPECT_EQ(publisher.publish({devices, {}}), false);
  // Who touches the slice makes it be written again.
  api->slices.begin()->second["metadata"]["resourceVersion"] = "another";
  publisher.invalidate();
  EXPECT_EQ(publisher.publish({devices, {}}), true);
}

TEST_F(Slices, AreChangedWithoutAskingWhatIsThere) {
  auto devices = some_devices(0, 100);
  ASSERT_EQ(publisher.publish({devices, {}}), true);
  ASSERT_EQ(api->lists, 1);
  for (const std::size_t taken : {3U, 70U, 4U}) {
    devices[taken]["taints"] = json::array({{{"key", "gpu.nvidia.com/in-use"}, {"effect", "NoSchedule"}}});
    api->writes = 0;
    ASSERT_EQ(publisher.publish({devices, {}}), true);
    EXPECT_EQ(api->writes, 1);
  }
  EXPECT_EQ(publisher.publish({devices, {}}), false);
  EXPECT_EQ(api->lists, 1);
}

TEST_F(Slices, AreLookedAtWhenTheyAreNotAsTheyWereLeft) {
  ASSERT_EQ(publisher.publish({some_devices(0, 2), {}}), true);
  api->slices.begin()->second["metadata"]["resourceVersion"] = "another";
  EXPECT_EQ(publisher.publish({some_devices(0, 3), {}}), true);
  api->slices.clear();  // as a kubelet does
  EXPECT_EQ(publisher.publish({some_devices(0, 4), {}}), true);
  EXPECT_EQ(api->pool(), names_of(some_devices(0, 4)));
  EXPECT_EQ(api->lists, 3);
  // An API server that fails is no reason to ask it again at once.
  api->down = true;
  EXPECT_FALSE(publisher.publish({some_devices(0, 5), {}}));
  EXPECT_EQ(api->lists, 3);
}

TEST_F(Slices, KnowTheOldVersion) {
  api->api_version = ApiVersion::kV1beta1;
  ASSERT_TRUE(publisher.publish({some_devices(0, 1), {}}));
  const auto& slice = api->slices.begin()->second;
  EXPECT_EQ(slice["apiVersion"], "resource.k8s.io/v1beta1");
  EXPECT_EQ(
      slice["spec"]["devices"],
      json::array({{{"name", "gpu-0"}, {"basic", {{"attributes", {{"uuid", {{"string", "GPU-0"}}}}}}}}}));
}

json tainted(const char* name, const std::vector<const char*>& effects) {
  json taints = json::array();
  for (const char* effect : effects) taints.push_back({{"key", "gpu.nvidia.com/xid"}, {"effect", effect}});
  return {{"name", name}, {"taints", taints}};
}

TEST(SliceContent, IsFittedToWhatTheServerKnows) {
  const PoolContent content{{{{"name", "gpu-0"}},
                             {{"name", "gpu-1-mig"}, {"consumesCounters", json::array()}},
                             tainted("gpu-2", {"NoSchedule", "None"}),
                             tainted("gpu-3", {"None"})},
                            {{{"name", "gpu-1-counter-set"}}}};
  const auto all = fitted(content, {.informational_taints = true});
  EXPECT_EQ(all.devices, content.devices);
  EXPECT_EQ(all.counter_sets, content.counter_sets);
  EXPECT_EQ(
      fitted(content, {}).devices,
      std::vector<json>(
          {content.devices[0], content.devices[1], tainted("gpu-2", {"NoSchedule"}), {{"name", "gpu-3"}}}));
  // A GPU that is only warned of is as good as any other there.
  EXPECT_THAT(names_of(fitted(content, {.taints = false, .informational_taints = true}).devices),
              ElementsAre("gpu-0", "gpu-1-mig", "gpu-3"));
  const auto whole = fitted(content, {.counters = false});
  EXPECT_THAT(names_of(whole.devices), ElementsAre("gpu-0", "gpu-2", "gpu-3"));
  EXPECT_THAT(whole.counter_sets, IsEmpty());
}

TEST(SliceContent, ComparesQuantitiesByTheirValue) {
  const auto with = [](const char* memory) {
    return json{
        {"spec", {{"devices", {{{"name", "gpu-0"}, {"capacity", {{"memory", {{"value", memory}}}}}}}}}}};
  };
  EXPECT_TRUE(says_the_same(with("80Gi"), with("81920Mi")));
  EXPECT_FALSE(says_the_same(with("80Gi"), with("80G")));
  EXPECT_FALSE(says_the_same(json("garbage"), with("80G")));
}

TEST(SliceNames, AreChecked) {
  EXPECT_TRUE(check_names("gpu.nvidia.com", "node-1.example"));
  EXPECT_FALSE(check_names("gpu.nvidia.com", ""));
  EXPECT_FALSE(check_names("GPU", "node"));
  EXPECT_FALSE(check_names("gpu.nvidia.com", "a/../b"));
  EXPECT_FALSE(check_names(std::string(64, 'a'), "node"));
}

RC_GTEST_PROP(SlicesProperty, ASchedulerSeesTheOldOrTheNewOrNothing, ()) {
  auto api = std::make_shared<FakeSlices>();
  auto publisher = std::make_unique<Publisher>(api, "gpu.nvidia.com", "node1");
  std::set<std::set<std::string>> published{{}};
  std::set<std::string> now;
  api->after_write = [&] {
    if (const auto pool = api->pool()) RC_ASSERT(*pool == now || published.contains(*pool));
  };
  for (int step = 0; step < 12; ++step) {
    const auto from = *rc::gen::inRange(0, 150);
    const auto devices = some_devices(from, *rc::gen::inRange(from, 200));
    now = names_of(devices);
    if (*rc::gen::arbitrary<bool>()) api->writes_left = *rc::gen::inRange(0, 5);
    const auto done = publisher->publish({devices, {}});
    published = {now};
    if (const auto pool = api->pool()) published.insert(*pool);
    api->writes_left.reset();
    if (done) RC_ASSERT(api->pool() == now);
    if (*rc::gen::arbitrary<bool>()) publisher = std::make_unique<Publisher>(api, "gpu.nvidia.com", "node1");
  }
  now = names_of(some_devices(0, 70));
  RC_ASSERT(publisher->publish({some_devices(0, 70), {}}));
  RC_ASSERT(api->pool() == now);
  RC_ASSERT(api->slices.size() == 2U);
}

}  // namespace
}  // namespace drover::kube::dra

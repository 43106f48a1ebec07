#include "kube/scheduler/claims/device_pools.h"

#include <gtest/gtest.h>

#include "kube/scheduler/claims/testing/pools.h"

namespace drover::kube::scheduler {
namespace {

using testing::allocated;
using testing::claim;
using testing::gpu;
using testing::gpus;
using testing::json;
using testing::request;
using testing::slice;
using testing::TestCluster;

json part_of(int generation, int count, const json& more = json::object()) {
  json pool{{"pool", {{"generation", generation}, {"resourceSliceCount", count}}}};
  pool.merge_patch(more);
  return pool;
}
const testing::List kOne{claim("a", {request("r")})};

TEST(DevicePools, UseAPoolOnceItIsComplete) {
  TestCluster cluster({slice("a", {gpu("g0")}, part_of(1, 2))});
  const auto all = testing::List{claim("a", {request("r", {{"allocationMode", "All"}})})};
  EXPECT_EQ(cluster.given(kOne),
            "its ResourceClaim: the request 'r': no devices are left, and the pool of "
            "'gpu.example.com' is being updated");
  EXPECT_EQ(cluster.given(all),
            "its ResourceClaim asks for all devices, but the pool 'n1' of 'gpu.example.com' is being "
            "updated");
  cluster.put(slice("b", {gpu("g1")}, part_of(1, 2)));
  EXPECT_EQ(cluster.given(all), "g0 g1");
  cluster.pools.remove_slice("a");
  EXPECT_NE(cluster.given(kOne), "g1");
}

TEST(DevicePools, UseTheNewestGeneration) {
  TestCluster cluster({slice("old", {gpu("old")}, part_of(1, 1))});
  EXPECT_EQ(cluster.given(kOne), "old");
  cluster.put(slice("new-1", {gpu("new-1")}, part_of(2, 2)));
  EXPECT_NE(cluster.given(kOne), "old");
  cluster.put(slice("new-2", {gpu("new-2")}, part_of(2, 2)));
  EXPECT_EQ(cluster.given(kOne), "new-1");
  cluster.pools.remove_slice("old");
  EXPECT_EQ(cluster.given(kOne), "new-1");
}

TEST(DevicePools, CountSlicesOfOtherNodes) {
  const json elsewhere{{"nodeName", "n2"}};
  TestCluster cluster({slice("here", {gpu("here")}, part_of(1, 2))});
  cluster.put(slice("there", {gpu("there")}, part_of(1, 2, elsewhere)));
  EXPECT_EQ(cluster.given(kOne), "here");
  // One that is of this node no longer: its driver is about to replace it.
  cluster.put(slice("there", {gpu("there")}, part_of(2, 1, elsewhere)));
  EXPECT_TRUE(cluster.pools.pools_of(cluster.node).empty());
  cluster.node.name = "n2";
  EXPECT_EQ(cluster.given(kOne), "there");
}

TEST(DevicePools, RefuseWhatIsWrong) {
  const auto why = [](const testing::List& slices) {
    const TestCluster cluster(slices);
    return cluster.pools.pools_of(cluster.node).front().invalid;
  };
  const json consuming{
      {"consumesCounters", {{{"counterSet", "s"}, {"counters", {{"c", {{"value", "1"}}}}}}}}};
  const auto counters = [](const char* name, const char* set, const char* counter) {
    return slice(
        name, {},
        part_of(1, 2, {{"sharedCounters", {{{"name", set}, {"counters", {{counter, {{"value", "1"}}}}}}}}}));
  };
  const auto devices = slice("d", {gpu("g", consuming)}, part_of(1, 2));
  EXPECT_EQ(why({slice("a", {gpu("g")}, part_of(1, 2)), slice("b", {gpu("g")}, part_of(1, 2))}),
            "two of its devices are named 'g'");
  EXPECT_EQ(why({devices, counters("c", "other", "c")}),
            "its device 'g' consumes counters of the set 's', which it lacks");
  EXPECT_EQ(why({devices, counters("c", "s", "other")}),
            "its device 'g' consumes the counter 'c', which its set 's' lacks");
  EXPECT_EQ(why({counters("b", "s", "c"), counters("c", "s", "c")}),
            "two of its sets of counters are named 's'");
  EXPECT_EQ(why({devices, counters("c", "s", "c")}), "");
}

TEST(DevicePools, FindClaimsByName) {
  TestCluster cluster;
  cluster.put_claim(claim("a", {request("r")}));
  ASSERT_NE(cluster.pools.claim("default", "a"), nullptr);
  EXPECT_EQ(cluster.pools.claim("default", "a")->uid, "uid-a");
  EXPECT_EQ(cluster.pools.claim("uid-a")->name, "a");
  // It is made anew, and its end is seen later.
  auto again = claim("a", {request("r")});
  again["metadata"]["uid"] = "second";
  cluster.put_claim(again);
  cluster.pools.remove_claim("uid-a");
  EXPECT_EQ(cluster.pools.claim("default", "a")->uid, "second");
  cluster.pools.remove_claim("second");
  EXPECT_EQ(cluster.pools.claim("default", "a"), nullptr);
}

TEST(DevicePools, RememberWhoHasWhatBeforeItIsKnown) {
  TestCluster cluster;
  cluster.put_claim(allocated(claim("old", {request("r")}), {{{"device", "gpu-0"}}}));
  cluster.put(slice("s", gpus(2)));
  EXPECT_EQ(cluster.given(kOne), "gpu-1");
  cluster.pools.remove_slice("s");
  cluster.put(slice("s", gpus(2)));
  EXPECT_EQ(cluster.given(kOne), "gpu-1");
  cluster.put_claim(claim("old", {request("r")}));
  EXPECT_EQ(cluster.given(kOne), "gpu-0");
}

TEST(DevicePools, OfTwoClassesTheNewerOneStandsForAResource) {
  TestCluster cluster;
  const json named{{"extendedResourceName", "example.com/gpu"}};
  cluster.put_class(named, "a", "2026-01-01T00:00:00Z");
  cluster.put_class(named, "c", "2026-01-02T00:00:00Z");
  cluster.put_class(named, "b", "2026-01-02T00:00:00Z");
  EXPECT_EQ(cluster.pools.class_for_resource("example.com/gpu")->name, "b");
  cluster.pools.remove_class("b");
  EXPECT_EQ(cluster.pools.class_for_resource("example.com/gpu")->name, "c");
  EXPECT_EQ(cluster.pools.class_for_resource("deviceclass.resource.kubernetes.io/a")->name, "a");
  EXPECT_EQ(cluster.pools.class_for_resource("example.com/tpu"), nullptr);
  EXPECT_EQ(cluster.pools.class_for_resource(""), nullptr);
}

TEST(Selectors, AreAskedOnceAboutDevicesThatAreAlike) {
  TestCluster cluster;
  for (int node = 0; node < 50; ++node)
    cluster.put(
        slice("s" + std::to_string(node), gpus(8),
              {{"nodeName", "n" + std::to_string(node)}, {"pool", {{"name", "n" + std::to_string(node)}}}}));
  for (int node = 0; node < 50; ++node) {
    cluster.node.name = "n" + std::to_string(node);
    EXPECT_EQ(cluster.given(kOne), "gpu-0");
  }
  EXPECT_EQ(cluster.pools.selectors().evaluations(), 1);
}

TEST(Selectors, ForgetWhenThereAreMany) {
  TestCluster cluster({slice("s", gpus(1))});
  for (int round = 0; round < 2; ++round)
    for (int i = 0; i < 400; ++i) {
      const auto expression = "device.driver == '" + std::string(i % 2 == 0 ? "gpu.example.com" : "x") +
                              "' || " + std::to_string(i) + " < 0";
      EXPECT_EQ(cluster.given({claim("a", {request("r", testing::selected_by(expression))})}) == "gpu-0",
                i % 2 == 0);
    }
}

}  // namespace
}  // namespace drover::kube::scheduler

#include "placement/weaker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "placement/testing/clusters.h"

namespace drover::placement {
namespace {

using namespace testing;  // NOLINT: nodes and requests
using ::testing::ElementsAre;
using ::testing::IsEmpty;

Cluster cluster_with(const std::vector<Node>& nodes) {
  Cluster cluster;
  for (const auto& node : nodes) cluster.set_node(node);
  return cluster;
}

void take(Cluster& cluster, const std::string& id, const Request& request) {
  const auto answer = cluster.place(request);
  ASSERT_TRUE(cluster.allocate(id, request, std::get<Decision>(answer)));
}

StartOf fitting(Cluster& cluster) {
  return [&](const Gang& gang) { return try_place(cluster, gang); };
}

std::vector<std::string> remedies(Cluster& cluster, const Gang& gang, std::size_t most = 9) {
  std::vector<std::string> words;
  for (const auto& weaker : weaker_that_start(cluster, gang, fitting(cluster), most))
    words.push_back(weaker.remedy);
  return words;
}

TEST(Weaker, AsksForAsManyGpusAsAreFree) {
  auto cluster = cluster_with({node("a", {8})});
  take(cluster, "one", gpus(3));
  EXPECT_THAT(remedies(cluster, {{gpus(8)}}), ElementsAre("ask for 5 GPUs"));
  take(cluster, "two", gpus(5));
  EXPECT_THAT(remedies(cluster, {{gpus(8)}}), IsEmpty());
}

TEST(Weaker, GivesUpTheInterconnectOnlyAsFarAsItMust) {
  auto cluster = cluster_with({node("a", {4})});  // all joined within one NUMA node
  auto request = gpus(2);
  request.interconnect.min_nvlinks = 2;
  EXPECT_THAT(remedies(cluster, {{request}}), ElementsAre("be content with the interconnect 'node'",
                                                          "ask for 1 GPU, and for no interconnect"));
  EXPECT_THAT(remedies(cluster, {{request}}, 1), ElementsAre("be content with the interconnect 'node'"));
}

TEST(Weaker, NamesTheModelsThatWouldBeGiven) {
  auto cluster = cluster_with({node("a", {1, "A100"}), node("v", {2, "V100"})});
  auto request = gpus(1);
  request.gpus.front().filter.models = {"A100"};
  take(cluster, "a100", request);
  EXPECT_THAT(remedies(cluster, {{request}}), ElementsAre("be content with GPUs of another model: V100"));
  request = gpus(2);
  request.gpus.front().filter.models = {"H100", "V100"};
  request.gpus.front().filter.min_memory_bytes = 40 * kGiB;
  EXPECT_THAT(remedies(cluster, {{request}}), ElementsAre("be content with GPUs of less memory: V100"));
}

TEST(Weaker, GivesUpEachThingThatGpusMustBeLike) {
  auto plain = node("a", {2});
  for (auto& device : plain.inventory.devices) {
    device.ecc = false;
    device.compute_capability = gpu::ComputeCapability{7, 0};
  }
  auto cluster = cluster_with({plain});
  const auto with = [](void (*change)(DeviceFilter&)) {
    auto request = gpus(1);
    change(request.gpus.front().filter);
    return Gang{{request}};
  };
  EXPECT_THAT(remedies(cluster, with([](auto& filter) { filter.ecc = true; })),
              ElementsAre("be content with GPUs without ECC: V100"));
  EXPECT_THAT(remedies(cluster, with([](auto& filter) { filter.min_driver = "550"; })),
              ElementsAre("be content with an older driver: 535.104.05"));
  EXPECT_THAT(remedies(cluster, with([](auto& filter) { filter.min_compute_capability = {8, 0}; })),
              ElementsAre("be content with GPUs of a lower compute capability: V100"));
  auto different = gpus(2);
  different.different_models = true;
  EXPECT_THAT(remedies(cluster, {{different}}), ElementsAre("be content with GPUs of one model",
                                                            "ask for 1 GPU, and not for different models"));
}

TEST(Weaker, GivesUpAttributesOneByOne) {
  auto only = node("a", {1});
  only.attributes = {{"rack", {"r7"}}};
  auto cluster = cluster_with({only});
  auto request = gpus(1);
  request.attributes = {{"rack", {"r7"}}, {"site", {"x", "y"}}};
  EXPECT_THAT(remedies(cluster, {{request}}), ElementsAre("do not ask for the attribute site=x or y"));
}

TEST(Weaker, AsksForAmountsThatCanBeWritten) {
  auto cluster = cluster_with({node("a", {1})});
  take(cluster, "most", Request{.milli_cpus = 59'950, .memory_bytes = 250 * kGiB + 1});
  EXPECT_THAT(remedies(cluster, {{cpu_only(10'000)}}), ElementsAre("ask for 4 CPUs"));
  EXPECT_THAT(remedies(cluster, {{Request{.memory_bytes = 8 * kGiB}}}),
              ElementsAre("ask for 5 GiB of memory"));
  take(cluster, "rest", Request{.memory_bytes = 5 * kGiB});
  EXPECT_THAT(remedies(cluster, {{Request{.memory_bytes = 8 * kGiB}}}),
              ElementsAre("ask for 1023 MiB of memory"));
  auto large = node("large", {0});
  large.memory_bytes = 1500 * kGiB;
  auto other = cluster_with({large});
  EXPECT_THAT(remedies(other, {{Request{.milli_cpus = 1'000, .memory_bytes = 1536 * kGiB}}}),
              ElementsAre("ask for 1500 GiB of memory"));
  take(other, "most", cpu_only(63'000));
  EXPECT_THAT(remedies(other, {{cpu_only(2'000)}}), ElementsAre("ask for 1 CPU"));
  auto share = gpus(1);
  share.share.milli = 575;
  take(cluster, "share", share);
  EXPECT_THAT(remedies(cluster, {{share}}), ElementsAre("ask for a share of 0.42"));
  EXPECT_THAT(remedies(cluster, {{gpus(1)}}), ElementsAre("ask for a share of 0.42"));
  share.share = {.memory_bytes = 10 * kGiB};
  EXPECT_THAT(remedies(cluster, {{share}}), ElementsAre("ask for a share of 6 GiB"));
}

TEST(Weaker, AsksForLessOfAllWhenSeveralThingsAreShort) {
  auto cluster = cluster_with({node("a", {4})});
  auto most = gpus(2);
  most.milli_cpus = 60'000;
  most.memory_bytes = 250 * kGiB;
  take(cluster, "most", most);
  auto request = gpus(3);
  request.milli_cpus = 8'000;
  request.memory_bytes = 16 * kGiB;
  EXPECT_THAT(remedies(cluster, {{request}}), ElementsAre("ask for 2 GPUs, 4 CPUs and 6 GiB of memory"));
  request.memory_bytes = 3 * kGiB;
  EXPECT_THAT(remedies(cluster, {{request}}), ElementsAre("ask for 2 GPUs and 4 CPUs"));
}

TEST(Weaker, MakesAGangSmallerOrItsMembers) {
  auto cluster = cluster_with({node("a", {4}), node("b", {2})});
  take(cluster, "one", gpus(1));
  EXPECT_THAT(remedies(cluster, {{gpus(2), gpus(2), gpus(2)}}),
              ElementsAre("ask for 1 GPU for each member", "make it a gang of 2"));
  EXPECT_THAT(remedies(cluster, {{gpus(1), gpus(1), gpus(1)}, Arrangement::kSpread}),
              ElementsAre("be content with the arrangement 'any'", "make it a gang of 2"));
  EXPECT_THAT(remedies(cluster, {std::vector<Request>(17, gpus(1))}), IsEmpty());
}

RC_GTEST_PROP(Weaker, PropertyEachStartsAndAsksForSomethingElse, ()) {
  auto cluster = cluster_with({node("a", {4, "A100", 40 * kGiB, 2}), node("v", {3})});
  for (int i = *rc::gen::inRange(0, 5); i > 0; --i) {
    auto request = gpus(*rc::gen::inRange(1, 3));
    request.milli_cpus = *rc::gen::inRange(0, 30'000);
    if (request.gpu_count() == 1) request.share.milli = *rc::gen::element(1000, 400, 700);
    const auto answer = cluster.place(request);
    if (const auto* decision = std::get_if<Decision>(&answer))
      RC_ASSERT(cluster.allocate(std::to_string(i), request, *decision).has_value());
  }
  auto request = gpus(*rc::gen::inRange(1, 5));
  request.milli_cpus = *rc::gen::inRange(1, 64'000);
  request.memory_bytes = *rc::gen::inRange<std::uint64_t>(1, 200 * kGiB);
  if (request.gpu_count() > 1) request.interconnect.min_nvlinks = *rc::gen::inRange(0, 4);
  if (*rc::gen::arbitrary<bool>()) request.gpus.front().filter.models = {"A100"};
  request.share.milli = *rc::gen::element(1000, 500, 300);
  const Gang gang{std::vector<Request>(*rc::gen::inRange<std::size_t>(1, 4), request)};
  const auto most = *rc::gen::inRange<std::size_t>(1, 6);
  const auto found = weaker_that_start(cluster, gang, fitting(cluster), most);
  RC_ASSERT(found.size() <= most);
  for (const auto& weaker : found) {
    RC_ASSERT(!(weaker.gang == gang));
    RC_ASSERT(validate(weaker.gang).has_value());
    RC_ASSERT(std::holds_alternative<std::vector<Decision>>(place(cluster, weaker.gang)));
  }
  RC_CLASSIFY(!found.empty(), "there is a remedy");
}

}  // namespace
}  // namespace drover::placement

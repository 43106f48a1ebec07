#include "placement/weaker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "placement/testing/clusters.h"

namespace drover::placement {
namespace {

using namespace testing;  // NOLINT: nodes and requests
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

Cluster cluster_of(const std::vector<Node>& nodes) {
  Cluster cluster;
  for (const auto& node : nodes) cluster.set_node(node);
  return cluster;
}

void take(Cluster& cluster, const std::string& id, const Request& request) {
  const auto answer = cluster.place(request);
  ASSERT_TRUE(cluster.allocate(id, request, std::get<Decision>(answer)));
}

std::vector<std::string> remedies(Cluster& cluster, const Gang& gang) {
  std::vector<std::string> words;
  for (const auto& weaker : weaker_that_fit(cluster, gang)) words.push_back(weaker.remedy);
  return words;
}

TEST(Weaker, AsksForAsManyGpusAsAreFree) {
  auto cluster = cluster_of({node("a", {8})});
  take(cluster, "one", gpus(3));
  EXPECT_THAT(remedies(cluster, {{gpus(8)}}), ElementsAre("ask for 5 GPUs"));
  take(cluster, "two", gpus(5));
  EXPECT_THAT(remedies(cluster, {{gpus(8)}}), IsEmpty());
}

TEST(Weaker, GivesUpTheInterconnectOnlyAsFarAsItMust) {
  auto cluster = cluster_of({node("a", {4})});  // all joined within one NUMA node
  auto request = gpus(2);
  request.interconnect.min_nvlinks = 2;
  EXPECT_THAT(remedies(cluster, {{request}}), ElementsAre("be content with the interconnect 'node'"));
}

TEST(Weaker, GivesUpTheModel) {
  auto cluster = cluster_of({node("a", {1, "A100"}), node("v", {2, "V100"})});
  take(cluster, "a100", gpus(1));
  auto request = gpus(1);
  request.gpus.front().filter.models = {cluster.find("a100")->node == "a" ? "A100" : "V100"};
  request.gpus.front().count = cluster.find("a100")->node == "a" ? 1 : 2;
  EXPECT_THAT(remedies(cluster, {{request}}), Contains("take GPUs of any model"));
}

TEST(Weaker, AsksForLessOfOtherThings) {
  auto cluster = cluster_of({node("a", {1})});
  take(cluster, "most", Request{.milli_cpus = 60'000, .memory_bytes = 255 * kGiB});
  EXPECT_THAT(remedies(cluster, {{cpu_only(10'000)}}), ElementsAre("ask for 4 CPUs"));
  EXPECT_THAT(remedies(cluster, {{Request{.memory_bytes = 2 * kGiB}}}),
              ElementsAre("ask for 1024 MiB of memory"));
  auto half = gpus(1);
  half.share.milli = 600;
  take(cluster, "share", half);
  EXPECT_THAT(remedies(cluster, {{half}}), ElementsAre("ask for a share of 0.4"));
}

TEST(Weaker, MakesAGangSmaller) {
  auto cluster = cluster_of({node("a", {4})});
  take(cluster, "one", gpus(1));
  EXPECT_THAT(remedies(cluster, {{gpus(1), gpus(1), gpus(1), gpus(1)}}), ElementsAre("make it a gang of 3"));
  EXPECT_THAT(remedies(cluster, {std::vector<Request>(17, gpus(1))}), IsEmpty());
}

RC_GTEST_PROP(Weaker, PropertyEachFitsAndAsksForSomethingElse, ()) {
  auto cluster = cluster_of({node("a", {4, "A100", 40 * kGiB, 2}), node("v", {3})});
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
  for (const auto& weaker : weaker_that_fit(cluster, gang)) {
    RC_ASSERT(!(weaker.gang == gang));
    RC_ASSERT(validate(weaker.gang).has_value());
    RC_ASSERT(std::holds_alternative<std::vector<Decision>>(place(cluster, weaker.gang)));
  }
}

}  // namespace
}  // namespace drover::placement

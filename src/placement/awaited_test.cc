#include "placement/awaited.h"

#include <gtest/gtest.h>

#include "placement/testing/clusters.h"

namespace drover::placement {
namespace {

using namespace testing;  // NOLINT: nodes and requests

class Awaited : public ::testing::Test {
 protected:
  void take(const std::string& node, const Request& request) {
    const auto answer = cluster_.place_on(node, request);
    ASSERT_TRUE(cluster_.allocate(std::to_string(++ids_), request, std::get<Decision>(answer)));
  }

  Cluster cluster_;
  int ids_ = 0;
};

TEST_F(Awaited, IsWhereTheFewestGpusHaveToComeFree) {
  cluster_.set_node(node("a", {4}));
  cluster_.set_node(node("b", {4}));
  cluster_.set_node(node("small", {1}));
  take("a", gpus(4));
  take("b", gpus(2));
  EXPECT_EQ(awaited(cluster_, {{gpus(3)}}), "wait for 1 GPU of b");
  EXPECT_EQ(awaited(cluster_, {{gpus(4)}}), "wait for 2 GPUs of b");
  take("b", gpus(2));
  EXPECT_EQ(awaited(cluster_, {{gpus(4)}}), "wait for 4 GPUs of a");
}

TEST_F(Awaited, IsToldOnlyWhereGpusAreAllThatIsShort) {
  cluster_.set_node(node("a", {2}));
  auto busy = gpus(2);
  busy.milli_cpus = 60'000;
  take("a", busy);
  auto request = gpus(1);
  request.milli_cpus = 4'000;
  EXPECT_EQ(awaited(cluster_, {{request}}), "wait for 1 GPU of a");
  request.milli_cpus = 5'000;
  EXPECT_EQ(awaited(cluster_, {{request}}), "");
  EXPECT_EQ(awaited(cluster_, {{cpu_only(5'000)}}), "");
  EXPECT_EQ(awaited(cluster_, {{gpus(1), gpus(1)}}), "");
}

TEST_F(Awaited, IsTheNodeThatIsOnlyCordoned) {
  auto closed = node("b", {2});
  closed.cordoned = "in repair";
  cluster_.set_node(node("a", {2}));
  cluster_.set_node(closed);
  take("a", gpus(2));
  EXPECT_EQ(awaited(cluster_, {{gpus(2)}}), "uncordon b");
  EXPECT_EQ(awaited(cluster_, {{gpus(1), gpus(1)}}), "uncordon b");
  EXPECT_EQ(cluster_.node("b")->cordoned, "in repair");
}

}  // namespace
}  // namespace drover::placement

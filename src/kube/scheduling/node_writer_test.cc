#include "kube/scheduling/node_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "kube/client/testing/fake_api.h"
#include "kube/scheduler/node_holds.h"

namespace drover::kube {
namespace {

using nlohmann::json;
using testing::FakeApi;

const json kOthersTaint{{"key", "dedicated"}, {"value", "gpus"}, {"effect", "NoSchedule"}};
const json kOwnTaint{{"key", scheduler::kHeldTaint}, {"value", "drover"}, {"effect", "NoSchedule"}};

class NodeWriterTest : public ::testing::Test {
 protected:
  void make_node(const json& taints) {
    ASSERT_TRUE(api_.create({kNodes}, {{"apiVersion", "v1"},
                                       {"kind", "Node"},
                                       {"metadata", {{"name", "a"}}},
                                       {"spec", {{"providerID", "x"}, {"taints", taints}}}}));
  }
  json spec() { return api_.get({kNodes, "", "a"}).value().at("spec"); }
  std::size_t patches() const {
    const auto requests = api_.requests();
    return static_cast<std::size_t>(std::ranges::count(requests, std::string("patch"), &ApiRequest::verb));
  }

  FakeApi api_;
};

TEST_F(NodeWriterTest, AddsItsTaintToThoseOfOthersAndTakesNoOtherAway) {
  make_node(json::array({kOthersTaint}));
  ASSERT_TRUE(hold_node(api_, "a", "drover", true));
  EXPECT_EQ(spec().at("taints"), json::array({kOthersTaint, kOwnTaint}));
  ASSERT_TRUE(hold_node(api_, "a", "another", false));
  EXPECT_EQ(spec().at("taints"), json::array({kOthersTaint, kOwnTaint}));
  ASSERT_TRUE(hold_node(api_, "a", "drover", false));
  EXPECT_EQ(spec().at("taints"), json::array({kOthersTaint}));
  EXPECT_EQ(spec().at("providerID"), "x");
}

TEST_F(NodeWriterTest, WritesNothingThatIsThere) {
  make_node(json::array({kOwnTaint}));
  ASSERT_TRUE(hold_node(api_, "a", "drover", true));
  EXPECT_EQ(patches(), 0);
  ASSERT_TRUE(hold_node(api_, "a", "drover", false));
  EXPECT_FALSE(spec().contains("taints"));
}

TEST_F(NodeWriterTest, TriesAgainWhenAnotherHasWrittenTheNode) {
  make_node(json::array());
  api_.fail_next({{ErrorKind::kConflict, "the node has another version by now"}});
  ASSERT_TRUE(hold_node(api_, "a", "drover", true));
  EXPECT_EQ(spec().at("taints"), json::array({kOwnTaint}));
  const auto gone = hold_node(api_, "b", "drover", true);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().kind, ErrorKind::kNotFound);
}

}  // namespace
}  // namespace drover::kube

#include "kube/withdraw.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kube/client/testing/fake_api.h"
#include "kube/events/node_condition.h"
#include "kube/labels/apply.h"
#include "kube/scheduling/node_writer.h"

namespace drover::kube {
namespace {

using nlohmann::json;
using testing::FakeApi;

json node_named(const std::string& name) {
  return {{"apiVersion", "v1"},
          {"kind", "Node"},
          {"metadata", {{"name", name}, {"labels", {{"zone", "a"}}}, {"annotations", {{"by", "others"}}}}},
          {"status", {{"conditions", json::array({{{"type", "Ready"}, {"status", "True"}}})}}}};
}

TEST(WithdrawTest, WhatWeWroteGoesAndThatOfOthersStays) {
  FakeApi api;
  auto ours = node_named("gpu-1");
  ours["metadata"]["managedFields"] = json::array({{{"manager", "kubelet"}}, {{"manager", kLabelsManager}}});
  for (const auto& node : {ours, node_named("other")}) ASSERT_TRUE(api.create({kNodes}, node));
  ASSERT_TRUE(
      apply_labels(api, "gpu-1", {{"nvidia.com/gpu.count", "8"}}, {{"drover.dev/gpu-topology", "{}"}}));
  ASSERT_TRUE(set_node_condition(api, "gpu-1", {"DroverGpusReady", "True", "AllReady", "all"}, TimePoint()));
  ASSERT_TRUE(hold_node(api, "gpu-1", "drover", true));
  const auto asked = api.requests().size();

  EXPECT_EQ(withdraw(api), 1);
  const auto left = api.get({kNodes, "", "gpu-1"}).value();
  EXPECT_EQ(left["metadata"]["labels"], (json{{"zone", "a"}}));
  EXPECT_EQ(left["metadata"]["annotations"], (json{{"by", "others"}}));
  EXPECT_EQ(left["status"]["conditions"], node_named("gpu-1")["status"]["conditions"]);
  EXPECT_FALSE(left.value("spec", json::object()).contains("taints"));
  for (std::size_t i = asked; i < api.requests().size(); ++i)
    EXPECT_NE(api.requests()[i].path.name, "other") << "nothing of ours is there";
}

}  // namespace
}  // namespace drover::kube

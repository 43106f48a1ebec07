#include "kube/client/binding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "kube/client/testing/fake_api.h"

namespace drover::kube {
namespace {

using nlohmann::json;
using testing::FakeApi;
using ::testing::HasSubstr;

class BindTest : public ::testing::Test {
 protected:
  json make(const std::string& name, const json& spec = json::object()) {
    const auto pod = api_.create(
        {kPods, "n"}, {{"metadata", {{"name", name}, {"annotations", {{"old", "1"}}}}}, {"spec", spec}});
    EXPECT_TRUE(pod);
    return pod.value_or(json());
  }
  static Binding binding_of(const json& pod, const std::string& node) {
    return {.name_space = "n",
            .pod = text_at(pod, "/metadata/name"),
            .uid = text_at(pod, "/metadata/uid"),
            .resource_version = text_at(pod, "/metadata/resourceVersion"),
            .node = node,
            .annotations = {{"a/b", "2"}}};
  }
  json pod(const std::string& name) { return api_.get({kPods, "n", name}).value_or(json()); }
  ErrorKind refusal(const Binding& binding) {
    const auto bound = bind(api_, binding);
    EXPECT_FALSE(bound);
    return bound ? ErrorKind::kInternal : bound.error().kind;
  }

  FakeApi api_;
};

TEST_F(BindTest, SetsTheNodeAndTheAnnotationsAtOnce) {
  const auto made = make("x");
  const auto bound = bind(api_, binding_of(made, "node-1"));
  ASSERT_TRUE(bound) << to_string(bound.error());
  EXPECT_EQ(text_at(pod("x"), "/spec/nodeName"), "node-1");
  EXPECT_EQ(pod("x")["metadata"]["annotations"], json({{"old", "1"}, {"a/b", "2"}}));
  const auto request = api_.requests().at(1);
  EXPECT_EQ(request.verb + " " + url_path(request.path), "create /api/v1/namespaces/n/pods/x/binding");
  EXPECT_TRUE(request.repeatable);
}

TEST_F(BindTest, IsFineAgainButNotElsewhere) {
  const auto binding = binding_of(make("x"), "node-1");
  EXPECT_TRUE(bind(api_, binding));
  EXPECT_TRUE(bind(api_, binding));
  auto other = binding;
  other.annotations = {{"a/b", "3"}};
  EXPECT_EQ(refusal(other), ErrorKind::kConflict);
  other = binding;
  other.node = "node-2";
  EXPECT_EQ(refusal(other), ErrorKind::kConflict);
  EXPECT_EQ(text_at(pod("x"), "/spec/nodeName"), "node-1");
}

TEST_F(BindTest, LeavesAloneWhatIsNotAsItWasSeen) {
  auto binding = binding_of(make("x"), "node-1");
  EXPECT_TRUE(api_.patch({kPods, "n", "x"}, PatchType::kMerge, {{"metadata", {{"labels", {{"a", "b"}}}}}}));
  EXPECT_EQ(refusal(binding), ErrorKind::kConflict);
  binding.resource_version = "";
  binding.uid = "another";
  EXPECT_EQ(refusal(binding), ErrorKind::kConflict);
  EXPECT_EQ(refusal(binding_of(make("gated", {{"schedulingGates", {{{"name", "g"}}}}}), "node-1")),
            ErrorKind::kConflict);
  EXPECT_TRUE(api_.remove({kPods, "n", "x"}));
  EXPECT_EQ(refusal(binding), ErrorKind::kNotFound);
}

TEST_F(BindTest, SaysWhyWhenItDoesNotKnow) {
  const auto binding = binding_of(make("x"), "node-1");
  api_.fail_next({{ErrorKind::kConflict, "taken", "", ""}, {ErrorKind::kUnavailable, "down", "", ""}});
  const auto bound = bind(api_, binding);
  ASSERT_FALSE(bound);
  EXPECT_EQ(bound.error().message, "down");
}

}  // namespace
}  // namespace drover::kube

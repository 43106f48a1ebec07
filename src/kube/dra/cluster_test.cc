#include "kube/dra/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "kube/client/object.h"

namespace drover::kube::dra {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;

/// Answers by verb and path, and notes what it was asked.
class ScriptedApi : public Api {
 public:
  Result<json> send(const ApiRequest& request, const std::stop_token& /*stop*/,
                    const TakeItem& take) override {
    auto line = request.verb + " " + url_path(request.path);
    if (const auto found = request.query.find("fieldSelector"); found != request.query.end())
      line += "?" + found->second;
    asked.push_back(line);
    last = request;
    const auto answer = answers.find(line);
    if (answer == answers.end()) return fail(ErrorKind::kNotFound, "there is no " + line);
    auto said = answer->second;
    if (take && said.contains("items"))
      for (auto items = std::exchange(said["items"], json::array()); auto& item : items) take(item);
    return said;
  }
  Status watch(const WatchRequest& /*request*/, const TakeEvent& /*take*/,
               const std::stop_token& /*stop*/) override {
    return fail(ErrorKind::kUnsupported, "nothing is watched");
  }

  std::map<std::string, json> answers;
  std::vector<std::string> asked;
  ApiRequest last;
};

constexpr const char* kNewSlices = "/apis/resource.k8s.io/v1/resourceslices";
constexpr const char* kOldSlices = "/apis/resource.k8s.io/v1beta1/resourceslices";

TEST(Cluster, TakesTheNewestVersionThatIsServed) {
  ScriptedApi api;
  EXPECT_EQ(served_version(api, "node1").error().kind, ErrorKind::kUnsupported);
  api.answers["list " + std::string(kOldSlices) + "?spec.nodeName=node1"] = {{"items", json::array()}};
  EXPECT_EQ(served_version(api, "node1"), ApiVersion::kV1beta1);
  api.answers["list " + std::string(kNewSlices) + "?spec.nodeName=node1"] = {{"items", json::array()}};
  EXPECT_EQ(served_version(api, "node1"), ApiVersion::kV1);
}

TEST(Cluster, HasClaims) {
  auto api = std::make_shared<ScriptedApi>();
  const auto claims = claims_at(api, ApiVersion::kV1);
  api->answers["get /apis/resource.k8s.io/v1/namespaces/team-a/resourceclaims/a"] = {
      {"metadata", {{"uid", "1"}}}};
  EXPECT_EQ(claims->claim("team-a", "a").value(), json({{"metadata", {{"uid", "1"}}}}));
  EXPECT_EQ(claims->claim("team-a", "b").error().kind, ErrorKind::kNotFound);
  // A list of all claims would be an answer too.
  EXPECT_EQ(claims->claim("team-a", "").error().kind, ErrorKind::kInvalid);
  EXPECT_EQ(claims->claim("", "a").error().kind, ErrorKind::kInvalid);
  api->answers["list /apis/resource.k8s.io/v1/resourceclaims"] =
      json::parse(R"({"items": [{"metadata": {"name": "a", "uid": "1"}}]})");
  const auto all = claims->claims();
  ASSERT_TRUE(all) << to_string(all.error());
  EXPECT_EQ(*all, std::vector({json::parse(R"({"metadata": {"name": "a", "uid": "1"}})")}));
}

TEST(Cluster, WritesTheStatusOfOneClaim) {
  auto api = std::make_shared<ScriptedApi>();
  const auto claims = claims_at(api, ApiVersion::kV1beta1);
  (void)claims->apply_status({"team-a", "a", "uid"}, {{"devices", json::array()}}, "drover/d/n");
  EXPECT_THAT(api->asked,
              ElementsAre("patch /apis/resource.k8s.io/v1beta1/namespaces/team-a/resourceclaims/a/status"));
  EXPECT_EQ(api->last.query.at("fieldManager"), "drover/d/n");
  EXPECT_EQ(
      json::parse(api->last.body),
      json::parse(
          R"({"apiVersion": "resource.k8s.io/v1beta1", "kind": "ResourceClaim", "status": {"devices": []},
                            "metadata": {"namespace": "team-a", "name": "a", "uid": "uid"}})"));
}

TEST(Cluster, HasSlicesOfOneDriverOnOneNode) {
  auto api = std::make_shared<ScriptedApi>();
  const auto slices = slices_at(api, ApiVersion::kV1beta1, "gpu.nvidia.com", "node1");
  api->answers["get /api/v1/nodes/node1"] = {{"metadata", {{"uid", "u"}}}};
  EXPECT_EQ(slices->node_uid(), "u");
  api->asked.clear();
  const json slice{{"metadata", {{"name", "s"}}}};
  (void)slices->list();
  (void)slices->create(slice);
  (void)slices->update(slice);
  (void)slices->remove("s");
  const std::string path = kOldSlices;
  EXPECT_THAT(api->asked, ElementsAre("list " + path + "?spec.driver=gpu.nvidia.com,spec.nodeName=node1",
                                      "create " + path, "update " + path + "/s", "delete " + path + "/s"));
}

}  // namespace
}  // namespace drover::kube::dra

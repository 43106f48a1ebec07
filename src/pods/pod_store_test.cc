#include "pods/pod_store.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/eventually.h"
#include "pods/testing/pod_life.h"

namespace drover::pods {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PodOwnerTest : public testing::PodLife {
 protected:
  std::string uid_of_name_space() {
    const auto seen = api_.get({{"", "v1", "namespaces"}, "", "drover-ann"});
    return seen ? (*seen)["metadata"]["uid"].get<std::string>() : "";
  }
  int questions() const {
    return static_cast<int>(std::ranges::count_if(api_.requests(), [](const auto& request) {
      return request.verb == "get" && request.path.resource.plural == "namespaces";
    }));
  }
};

TEST_F(PodOwnerTest, IsItsUsersNamespace) {
  ASSERT_TRUE(pods_->launch(launch_of()));
  const auto owners = (*pod())["metadata"]["ownerReferences"];
  ASSERT_EQ(owners.size(), 1U);
  EXPECT_EQ(owners[0]["kind"], "Namespace");
  EXPECT_EQ(owners[0]["uid"], uid_of_name_space());
  EXPECT_EQ(owners[0]["controller"], true);
}

TEST_F(PodOwnerTest, IsAskedForOnceForMany) {
  for (const auto* id : {"a", "b", "c"}) {
    auto launch = launch_of();
    launch.task.id = id;
    ASSERT_TRUE(pods_->launch(launch));
  }
  EXPECT_EQ(questions(), 1);
}

TEST_F(PodOwnerTest, IsNobodyWhereItMayNotBeRead) {
  ASSERT_TRUE(
      api_.create({{"", "v1", "namespaces"}},
                  {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", "drover-ann"}}}}));
  api_.fail_next({{ErrorKind::kPermissionDenied, "may not", "", ""}});
  ASSERT_TRUE(pods_->launch(launch_of()));
  EXPECT_FALSE((*pod())["metadata"].contains("ownerReferences"));
}

/// Of the namespace of ann.
class PodClaimTest : public testing::PodLife {
 protected:
  static container::Launch launch_of(const std::string& id, const std::string& group) {
    auto launch = PodLife::launch_of();
    launch.task.id = id;
    launch.task.resources.gpus = {{1, {}}};
    launch.task.resources.group = group;
    if (group.empty()) launch.task.resources.share.milli = 500;
    return launch;
  }
  std::vector<json> claims() {
    std::vector<json> all;
    const auto list = api_.list({kClaims, "drover-ann"});
    for (const auto& claim : list->items) all.push_back(*claim);
    return all;
  }
  /// By their names.
  static std::vector<std::string> owners(const json& claim) {
    std::vector<std::string> names;
    for (const auto& owner : claim.at("metadata").at("ownerReferences")) names.push_back(owner.at("name"));
    return names;
  }
  void remove_claim() {
    ASSERT_TRUE(api_.remove({kClaims, "drover-ann", claims().at(0)["metadata"]["name"]}));
  }
};

TEST_F(PodClaimTest, IsMadeWithThePodAndSaysWhichGpusItHas) {
  ASSERT_TRUE(pods_->launch(launch_of("t", "")));
  ASSERT_EQ(claims().size(), 1U);
  EXPECT_THAT(owners(claims()[0]), ElementsAre("t-0"));
  EXPECT_EQ(claims()[0]["metadata"]["ownerReferences"][0]["uid"], (*pod())["metadata"]["uid"]);
  auto where = path();
  where.subresource = "binding";
  ASSERT_TRUE(api_.create(where, {{"metadata", {{"annotations", {{"drover.dev/claimed-gpus", "GPU-7"}}}}},
                                  {"target", {{"name", "n1"}}}}));
  EXPECT_THAT(told_.lines(1), ElementsAre("placed t 0 n1 GPU-7"));
}

TEST_F(PodClaimTest, OfAGroupIsOneAndAllMembersOwnIt) {
  for (const auto* id : {"one", "two"}) ASSERT_TRUE(pods_->launch(launch_of(id, "demo")));
  ASSERT_EQ(claims().size(), 1U);
  EXPECT_THAT(owners(claims()[0]), ElementsAre("one-0", "two-0"));
  auto bobs = launch_of("bobs", "demo");
  bobs.task.owner_name = bobs.task.user.name = "bob";
  ASSERT_TRUE(pods_->launch(bobs));
  EXPECT_EQ(claims().size(), 1U);
  EXPECT_EQ(api_.list({kClaims, "drover-bob"})->items.size(), 1U);
}

TEST_F(PodClaimTest, SaysByWhatTheNodeKeepsItToItsShare) {
  ASSERT_TRUE(pods_->launch(launch_of("t", "")));
  bind();
  set_status(container({{"running", {{"startedAt", format_time(wall_clock())}}}}));
  // The node says so a little later than the container starts.
  const auto devices = json::array({{{"driver", "gpu.nvidia.com"}, {"data", {{"tier", "guarded"}}}}});
  ASSERT_TRUE(api_.patch({kClaims, "drover-ann", claims().at(0)["metadata"]["name"].get<std::string>()},
                         kube::PatchType::kMerge, {{"status", {{"devices", devices}}}}));
  EXPECT_THAT(told_.lines(2), Contains("started t guarded"));
}

TEST_F(PodClaimTest, NobodyWaitsLongForANodeThatDoesNotSayIt) {
  ASSERT_TRUE(pods_->launch(launch_of("t", "")));
  bind();
  const auto looks = [&] {
    return std::ranges::count_if(api_.requests(), [](const kube::ApiRequest& request) {
      return request.verb == "get" && request.path.resource == kClaims;
    });
  };
  run();  // long ago
  EXPECT_THAT(told_.lines(2), Contains("started t"));
  EXPECT_EQ(looks(), 1);
}

TEST_F(PodClaimTest, AStartIsToldThoughItsNodeNeverSaysIt) {
  ASSERT_TRUE(pods_->launch(launch_of("t", "")));
  bind();
  set_status(container({{"running", {{"startedAt", format_time(wall_clock())}}}}));
  EXPECT_THAT(told_.lines(2), Contains("started t"));
  set_status(container({{"terminated", {{"exitCode", 0}}}}));
  EXPECT_THAT(told_.lines(3), Contains(HasSubstr("ended t")));
}

TEST_F(PodClaimTest, IsMadeInAnotherLifeOrWhenSomebodyHasRemovedIt) {
  ASSERT_TRUE(pods_->launch(launch_of("t", "demo")));
  pods_.reset();
  remove_claim();
  begin();
  ASSERT_TRUE(pods_->recover("t", 0));
  EXPECT_EQ(claims().size(), 1U);
  const auto why =
      fmt::format("resourceclaim \"{}\" not found", claims()[0]["metadata"]["name"].get<std::string>());
  remove_claim();
  set_status(
      {{"conditions", json::array({{{"type", "PodScheduled"}, {"status", "False"}, {"message", why}}})}});
  EXPECT_TRUE(eventually([&] { return claims().size() == 1; }));
}

TEST_F(PodClaimTest, WaitsUntilThatOfAnEarlierTaskIsGone) {
  ASSERT_TRUE(pods_->launch(launch_of("one", "demo")));
  const kube::ObjectPath path{kClaims, "drover-ann", claims().at(0)["metadata"]["name"]};
  ASSERT_TRUE(api_.patch(path, kube::PatchType::kMerge, {{"metadata", {{"finalizers", {"x/y"}}}}}));
  ASSERT_TRUE(api_.remove(path));
  ASSERT_TRUE(pods_->launch(launch_of("two", "demo")));
  EXPECT_THAT(told_.lines(1),
              Contains(HasSubstr("waits two: waits until the cluster has removed the claim")));
  ASSERT_TRUE(api_.patch(path, kube::PatchType::kMerge, {{"metadata", {{"finalizers", json::array()}}}}));
  EXPECT_TRUE(eventually([&] { return claims().size() == 1 && owners(claims()[0]).back() == "two-0"; }));
}

using PodSecretTest = testing::PodLife;

TEST_F(PodSecretTest, AreThereBeforeThePodAndGoWithIt) {
  auto launch = launch_of();
  launch.task.environment.edit()["TOKEN"] = "hidden";
  launch.secrets = {"TOKEN"};
  ASSERT_TRUE(pods_->launch(launch));
  std::vector<std::string> written;
  for (const auto& request : api_.requests()) {
    const auto& kind = request.path.resource.plural;
    if (request.verb != "list" && (kind == "secrets" || kind == "pods")) written.push_back(kind);
    if (kind == "pods") EXPECT_EQ(request.body.find("hidden"), std::string::npos);
  }
  EXPECT_THAT(written, ElementsAre("secrets", "pods", "secrets"));
  const auto secret = api_.get({{"", "v1", "secrets"}, "drover-ann", pod_name("t", 0)});
  ASSERT_TRUE(secret);
  EXPECT_EQ(secret->at("metadata").at("ownerReferences")[0].at("uid"), pod()->at("metadata").at("uid"));
}

}  // namespace
}  // namespace drover::pods

#include "kube/client/server_version.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "kube/client/testing/fake_api.h"

namespace drover::kube {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class VersionedApi : public Api {
 public:
  explicit VersionedApi(json info) : info_(std::move(info)) {}
  Result<json> send(const ApiRequest& request, const std::stop_token& /*stop*/,
                    const TakeItem& /*take*/) override {
    EXPECT_EQ(url_path(request.path), "/version");
    return info_;
  }
  Status watch(const WatchRequest& /*request*/, const TakeEvent& /*take*/,
               const std::stop_token& /*stop*/) override {
    return {};
  }

 private:
  json info_;
};

TEST(ServerVersionText, IsReadHoweverItIsSpelled) {
  VersionedApi plain({{"major", "1"}, {"minor", "36"}, {"gitVersion", "v1.36.2"}});
  EXPECT_EQ(server_version(plain), (ServerVersion{1, 36}));
  VersionedApi own_build({{"major", "1"}, {"minor", "35+"}});
  EXPECT_EQ(server_version(own_build), (ServerVersion{1, 35}));
  EXPECT_LT((ServerVersion{1, 9}), (ServerVersion{1, 35}));
}

TEST(ServerVersionText, IsNotGuessed) {
  for (const auto& info : {json::object(), json{{"major", "1"}, {"minor", ""}}, json{{"major", 1}}}) {
    VersionedApi api(info);
    const auto version = server_version(api);
    ASSERT_FALSE(version);
    EXPECT_EQ(version.error().kind, ErrorKind::kUnavailable);
    EXPECT_THAT(version.error().message, HasSubstr("says that its version is"));
  }
}

TEST(ServedResources, AreThoseOfTheirVersion) {
  testing::FakeApi api;
  const Resource gangs = {"scheduling.k8s.io", "v1beta1", "podgroups"};
  EXPECT_EQ(is_served(api, gangs), false);
  api.serve({gangs.group, gangs.version, "workloads"});
  EXPECT_EQ(is_served(api, gangs), false);
  api.serve(gangs);
  EXPECT_EQ(is_served(api, gangs), true);
  EXPECT_EQ(is_served(api, {gangs.group, "v1alpha2", gangs.plural}), false);
  EXPECT_EQ(url_path(api.requests().at(0).path), "/apis/scheduling.k8s.io/v1beta1");
  api.fail_next({{ErrorKind::kUnavailable, "down", "", ""}});
  EXPECT_FALSE(is_served(api, gangs));
}

}  // namespace
}  // namespace drover::kube

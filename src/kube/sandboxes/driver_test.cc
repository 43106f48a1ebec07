#include "kube/sandboxes/driver.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/fake_tree.h"
#include "kube/client/testing/fake_api.h"
#include "kube/rpc/channel.h"
#include "kube/withdraw.h"
#include "protocol/csi_v1.grpc.pb.h"
#include "protocol/plugin_registration.grpc.pb.h"

namespace drover::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kTheUid = "11111111-2222-3333-4444-555555555555";

/// Speaks to the driver as a kubelet does.
class SandboxDriverTest : public ::testing::Test {
 protected:
  SandboxDriverTest() {
    kubelet_.folder(fmt::format("pods/{}/volumes/kubernetes.io~csi/sandbox", kTheUid));
    EXPECT_TRUE(driver_.keep());
  }
  std::string socket(const std::string& path) const { return kubelet_ / path; }
  grpc::Status publish(const std::map<std::string, std::string>& said) {
    csi::v1::NodePublishVolumeRequest request;
    request.set_volume_id("csi-1");
    request.set_target_path(target_);
    for (const auto& [key, value] : said) (*request.mutable_volume_context())[key] = value;
    grpc::ClientContext context;
    csi::v1::NodePublishVolumeResponse response;
    return node()->NodePublishVolume(&context, request, &response);
  }
  std::unique_ptr<csi::v1::Node::Stub> node() const {
    return csi::v1::Node::NewStub(connect_to(socket("plugins/sandbox.drover.dev/csi.sock")));
  }

  FakeTree kubelet_;
  const std::string target_ =
      kubelet_ / fmt::format("pods/{}/volumes/kubernetes.io~csi/sandbox/mount", kTheUid);
  SandboxStore store_ = SandboxStore::open(kubelet_.root()).value();
  std::vector<std::string> warned_;
  SandboxDriver driver_{{.node = "n1",
                         .kubelet_folder = kubelet_.root(),
                         .version = "1.2",
                         .warn = [this](const auto& sentence) { warned_.push_back(sentence); }},
                        store_};
};

TEST_F(SandboxDriverTest, RegistersAsADriverOfVolumes) {
  const auto stub = pluginregistration::Registration::NewStub(
      connect_to(socket("plugins_registry/sandbox.drover.dev-reg.sock")));
  pluginregistration::PluginInfo info;
  grpc::ClientContext context;
  ASSERT_TRUE(stub->GetInfo(&context, {}, &info).ok());
  EXPECT_EQ(info.type(), "CSIPlugin");
  EXPECT_EQ(info.name(), "sandbox.drover.dev");
  EXPECT_EQ(info.endpoint(), socket("plugins/sandbox.drover.dev/csi.sock"));
  EXPECT_THAT(info.supported_versions(), ElementsAre("1.0.0"));
  for (const auto* error : {"not now", ""}) {
    pluginregistration::RegistrationStatus status;
    status.set_plugin_registered(*error == '\0');
    status.set_error(error);
    pluginregistration::RegistrationStatusResponse response;
    grpc::ClientContext another;
    ASSERT_TRUE(stub->NotifyRegistrationStatus(&another, status, &response).ok());
    EXPECT_EQ(driver_.is_registered(), *error == '\0');
  }
  EXPECT_THAT(warned_, ElementsAre(HasSubstr("not now")));
  csi::v1::NodeGetInfoResponse named;
  grpc::ClientContext asks;
  ASSERT_TRUE(node()->NodeGetInfo(&asks, {}, &named).ok());
  EXPECT_EQ(named.node_id(), "n1");
}

TEST_F(SandboxDriverTest, MakesAndKeepsAVolumeOfAPod) {
  const std::map<std::string, std::string> pod = {{"csi.storage.k8s.io/ephemeral", "true"},
                                                  {"csi.storage.k8s.io/pod.uid", kTheUid},
                                                  {"csi.storage.k8s.io/pod.namespace", "drover-ann"},
                                                  {"csi.storage.k8s.io/pod.name", "t-0"}};
  ASSERT_TRUE(publish(pod).ok());
  EXPECT_EQ(store_.list()[0].name_space + "/" + store_.list()[0].pod, "drover-ann/t-0");
  for (const bool again : {false, true}) {
    csi::v1::NodeUnpublishVolumeRequest request;
    request.set_volume_id("csi-1");
    request.set_target_path(target_);
    grpc::ClientContext context;
    csi::v1::NodeUnpublishVolumeResponse response;
    ASSERT_TRUE(node()->NodeUnpublishVolume(&context, request, &response).ok()) << again;
  }
  EXPECT_FALSE(store_.list()[0].live);
}

TEST_F(SandboxDriverTest, RefusesWhatIsNoVolumeOfAPod) {
  EXPECT_EQ(publish({}).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(publish({{"csi.storage.k8s.io/ephemeral", "true"}}).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_FALSE(std::filesystem::exists(target_));
}

TEST(SandboxLabel, SaysWhatIsAndGoesWithDrover) {
  testing::FakeApi api;
  ASSERT_TRUE(api.create({kNodes}, {{"metadata", {{"name", "n1"}, {"labels", {{"a", "b"}}}}}}));
  const auto labels = [&] { return api.get({kNodes, "", "n1"}).value()["metadata"]["labels"].dump(); };
  ASSERT_TRUE(label_sandboxes(api, "n1", false));
  EXPECT_EQ(labels(), R"({"a":"b"})");
  ASSERT_TRUE(label_sandboxes(api, "n1", true));
  EXPECT_EQ(labels(), R"({"a":"b","sandbox.drover.dev/ready":"true"})");
  const auto before = api.requests().size();
  ASSERT_TRUE(label_sandboxes(api, "n1", true));
  EXPECT_EQ(api.requests().size(), before + 1) << "nothing is written again";
  EXPECT_EQ(withdraw(api).value(), 1);
  EXPECT_EQ(labels(), R"({"a":"b"})");
}

}  // namespace
}  // namespace drover::kube

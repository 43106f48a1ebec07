#include "kube/kubelet/container_runtime.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "base/fake_tree.h"
#include "kube/rpc/socket_server.h"
#include "protocol/container_runtime.grpc.pb.h"

namespace drover::kube {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

CdiSupport judged(const std::string& name, const std::string& version,
                  const std::string& configuration = "") {
  return judge_runtime(name, version, configuration).cdi;
}

TEST(ContainerRuntime, DoesCdiByItsVersionAndConfiguration) {
  EXPECT_EQ(judged("containerd", "1.6.20~ds1"), CdiSupport::kNo);
  EXPECT_EQ(judged("containerd", "1.6.20", R"({"enableCDI": true})"), CdiSupport::kNo);
  EXPECT_EQ(judged("containerd", "v1.7.24", R"({"enableCDI": true})"), CdiSupport::kYes);
  EXPECT_EQ(judged("containerd", "1.7.24", R"({"enableCDI": false})"), CdiSupport::kNo);
  EXPECT_EQ(judged("containerd", "1.7.24", "{}"), CdiSupport::kUnknown);
  EXPECT_EQ(judged("containerd", "v2.1.9", "not JSON"), CdiSupport::kYes);
  EXPECT_EQ(judged("containerd", "2.1.9", R"({"enableCDI": false})"), CdiSupport::kNo);
  EXPECT_EQ(judged("cri-o", "1.22.1"), CdiSupport::kNo);
  EXPECT_EQ(judged("cri-o", "1.33.0"), CdiSupport::kYes);
  EXPECT_EQ(judged("other", "9.9"), CdiSupport::kUnknown);
  EXPECT_EQ(judged("containerd", "unknown"), CdiSupport::kUnknown);
}

TEST(ContainerRuntime, SaysHowToSwitchItOn) {
  EXPECT_THAT(judge_runtime("containerd", "1.6.20", "").advice, HasSubstr("from 1.7 on"));
  EXPECT_THAT(judge_runtime("containerd", "1.7.1", "{}").advice, HasSubstr("enable_cdi = true"));
  EXPECT_EQ(judge_runtime("containerd", "2.0.0", "").advice, "");
}

class FakeRuntime : public runtime::v1::RuntimeService::Service {
 public:
  grpc::Status Version(grpc::ServerContext*, const runtime::v1::VersionRequest*,
                       runtime::v1::VersionResponse* answer) override {
    answer->set_runtime_name("containerd");
    answer->set_runtime_version("v1.7.24");
    return grpc::Status::OK;
  }
  grpc::Status Status(grpc::ServerContext*, const runtime::v1::StatusRequest* request,
                      runtime::v1::StatusResponse* answer) override {
    if (request->verbose()) (*answer->mutable_info())["config"] = R"({"enableCDI": true})";
    return grpc::Status::OK;
  }
};

TEST(ContainerRuntime, IsAskedAtItsSocket) {
  FakeTree tree;
  FakeRuntime fake;
  const auto server = SocketServer::listen(tree / "cri.sock", {&fake});
  const auto runtime = ask_runtime(tree / "cri.sock", 10s);
  ASSERT_TRUE(runtime) << to_string(runtime.error());
  EXPECT_EQ(*runtime, (ContainerRuntime{"containerd", "v1.7.24", CdiSupport::kYes, ""}));
  const auto absent = ask_runtime(tree / "absent.sock", 100ms);
  ASSERT_FALSE(absent);
  EXPECT_THAT(absent.error().message, HasSubstr("absent.sock"));
}

}  // namespace
}  // namespace drover::kube

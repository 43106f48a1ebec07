#include "kube/kubelet/container_runtime.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/fake_tree.h"
#include "kube/rpc/socket_server.h"
#include "protocol/container_runtime.grpc.pb.h"

namespace drover::kube {
namespace {

using ::testing::ElementsAre;
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
  grpc::Status ListContainers(grpc::ServerContext*, const runtime::v1::ListContainersRequest* request,
                              runtime::v1::ListContainersResponse* answer) override {
    EXPECT_EQ(request->filter().state().state(), runtime::v1::CONTAINER_RUNNING);
    for (const auto state : {runtime::v1::CONTAINER_RUNNING, runtime::v1::CONTAINER_EXITED}) {
      auto& container = *answer->add_containers();
      container.set_id(std::to_string(state));
      container.set_state(state);
      (*container.mutable_labels())["io.kubernetes.pod.namespace"] = "ml";
      (*container.mutable_labels())["io.kubernetes.pod.name"] = "train";
      (*container.mutable_labels())["io.kubernetes.container.name"] = "main";
      (*container.mutable_labels())["io.kubernetes.pod.uid"] = "u-1";
      (*container.mutable_annotations())["drover.dev/replica"] = "pages" + std::to_string(state);
    }
    answer->add_containers()->set_state(runtime::v1::CONTAINER_RUNNING);  // no pod's
    return grpc::Status::OK;
  }
};

/// With pods that have two containers each. It takes no notice of what it is asked for.
class RuntimeOfPods : public runtime::v1::RuntimeService::Service {
 public:
  grpc::Status ListContainers(grpc::ServerContext*, const runtime::v1::ListContainersRequest* request,
                              runtime::v1::ListContainersResponse* answer) override {
    asked_for = request->filter().label_selector().at("io.kubernetes.pod.uid");
    for (const auto* uid : {"u-1", "u-2"})
      for (const auto state : {runtime::v1::CONTAINER_RUNNING, runtime::v1::CONTAINER_EXITED}) {
        auto& container = *answer->add_containers();
        container.set_id(fmt::format("{} {}", uid, static_cast<int>(state)));
        container.set_state(state);
        (*container.mutable_labels())["io.kubernetes.pod.uid"] = uid;
      }
    return grpc::Status::OK;
  }
  grpc::Status StopContainer(grpc::ServerContext* context, const runtime::v1::StopContainerRequest* request,
                             runtime::v1::StopContainerResponse*) override {
    EXPECT_EQ(request->timeout(), 0);
    stopped.push_back(request->container_id());
    while (hangs && !context->IsCancelled()) std::this_thread::yield();
    return grpc::Status::OK;
  }

  std::string asked_for;
  std::vector<std::string> stopped;
  std::atomic<bool> hangs = false;
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

TEST(ContainerRuntime, TellsWhatItRuns) {
  FakeTree tree;
  FakeRuntime fake;
  const auto server = SocketServer::listen(tree / "cri.sock", {&fake});
  ASSERT_TRUE(server);
  EXPECT_EQ(list_containers(tree / "cri.sock", 20s).value(),
            (std::vector<RunningContainer>{{"1", "ml", "train", "main", "u-1", "pages1"}}));
  EXPECT_EQ(list_containers(tree / "none.sock", 20s).error().kind, ErrorKind::kUnavailable);
}

TEST(ContainerRuntime, KillsThePodThatIsMeant) {
  FakeTree tree;
  RuntimeOfPods fake;
  const auto server = SocketServer::listen(tree / "cri.sock", {&fake});
  ASSERT_TRUE(server);
  ASSERT_TRUE(kill_pod(tree / "cri.sock", "u-2", 20s));
  EXPECT_EQ(fake.asked_for, "u-2");
  EXPECT_THAT(fake.stopped, ElementsAre("u-2 1"));
  EXPECT_TRUE(kill_pod(tree / "cri.sock", "u-3", 20s)) << "of which nothing runs";
  EXPECT_THAT(fake.stopped, ElementsAre("u-2 1"));
  fake.hangs = true;
  EXPECT_EQ(kill_pod(tree / "cri.sock", "u-1", 500ms).error().kind, ErrorKind::kUnavailable);
  EXPECT_EQ(kill_pod(tree / "none.sock", "u-1", 20s).error().kind, ErrorKind::kUnavailable);
}

}  // namespace
}  // namespace drover::kube

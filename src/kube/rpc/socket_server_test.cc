#include "kube/rpc/socket_server.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "base/fake_tree.h"
#include "base/files.h"
#include "protocol/device_plugin.grpc.pb.h"

namespace drover::kube {
namespace {

using ::testing::HasSubstr;

class Plugin : public v1beta1::DevicePlugin::Service {
 public:
  grpc::Status GetDevicePluginOptions(grpc::ServerContext*, const v1beta1::Empty*,
                                      v1beta1::DevicePluginOptions* options) override {
    options->set_pre_start_required(true);
    return grpc::Status::OK;
  }
  grpc::Status ListAndWatch(grpc::ServerContext* context, const v1beta1::Empty*,
                            grpc::ServerWriter<v1beta1::ListAndWatchResponse>* writer) override {
    writer->Write({});
    while (!context->IsCancelled()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ++ended;
    return grpc::Status::OK;
  }
  std::atomic<int> ended = 0;
};

grpc::Status ask(const std::string& path) {
  const auto channel = grpc::CreateChannel("unix:" + path, grpc::InsecureChannelCredentials());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
  v1beta1::DevicePluginOptions options;
  const auto status = v1beta1::DevicePlugin::NewStub(channel)->GetDevicePluginOptions(&context, {}, &options);
  EXPECT_EQ(options.pre_start_required(), status.ok());
  return status;
}

TEST(SocketServer, AnswersRootAlone) {
  FakeTree tree;
  Plugin plugin;
  const auto server = SocketServer::listen(tree / "s", {&plugin});
  ASSERT_TRUE(server) << to_string(server.error());
  EXPECT_TRUE(ask(tree / "s").ok());
  struct stat status{};
  ASSERT_EQ(::stat((tree / "s").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
}

TEST(SocketServer, TakesThePlaceOfWhatACrashLeft) {
  FakeTree tree;
  tree.file("s", "not even a socket");
  tree.file(".s", "");
  Plugin plugin;
  const auto server = SocketServer::listen(tree / "s", {&plugin});
  ASSERT_TRUE(server) << to_string(server.error());
  EXPECT_TRUE(ask(tree / "s").ok());
}

TEST(SocketServer, KnowsWhenItsSocketIsGoneAndLeavesAnothersAlone) {
  FakeTree tree;
  Plugin plugin;
  {
    const auto server = SocketServer::listen(tree / "s", {&plugin});
    ASSERT_TRUE(server);
    EXPECT_TRUE(server->is_there());
    ::unlink((tree / "s").c_str());
    EXPECT_FALSE(server->is_there());
    tree.file("s", "another's");
    EXPECT_FALSE(server->is_there());
  }
  EXPECT_EQ(read_file(tree / "s").value_or(""), "another's");
  {
    ASSERT_TRUE(SocketServer::listen(tree / "s", {&plugin}));
  }
  EXPECT_EQ(identity_of(tree / "s"), FileIdentity());
}

TEST(SocketServer, EndsWithStreamsUnderWay) {
  FakeTree tree;
  Plugin plugin;
  auto server = SocketServer::listen(tree / "s", {&plugin});
  ASSERT_TRUE(server);
  const auto channel = grpc::CreateChannel("unix:" + (tree / "s"), grpc::InsecureChannelCredentials());
  grpc::ClientContext context;
  const auto stub = v1beta1::DevicePlugin::NewStub(channel);
  const auto stream = stub->ListAndWatch(&context, {});
  v1beta1::ListAndWatchResponse first;
  ASSERT_TRUE(stream->Read(&first));
  server = SocketServer::listen(tree / "other", {&plugin});
  EXPECT_EQ(plugin.ended, 1);
  EXPECT_FALSE(stream->Read(&first));
}

TEST(SocketServer, OutlivesGarbageAndHalfSentRequests) {
  FakeTree tree;
  Plugin plugin;
  const auto server = SocketServer::listen(tree / "s", {&plugin});
  ASSERT_TRUE(server);
  for (const std::string garbage :
       {"GET / HTTP/1.1\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\xff\xff\xff", ""}) {
    const int half = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    std::strncpy(static_cast<char*>(address.sun_path), (tree / "s").c_str(), sizeof(address.sun_path) - 1);
    ASSERT_EQ(::connect(half, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    ASSERT_EQ(::send(half, garbage.data(), garbage.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(garbage.size()));
    EXPECT_TRUE(ask(tree / "s").ok());
    ::close(half);
  }
}

TEST(SocketServer, SaysWhereItCannotServe) {
  Plugin plugin;
  const auto absent = SocketServer::listen("/nowhere/at/all/s", {&plugin});
  ASSERT_FALSE(absent);
  EXPECT_THAT(absent.error().message, HasSubstr("'/nowhere/at/all/s'"));
  const auto long_path = SocketServer::listen("/tmp/" + std::string(120, 'x'), {&plugin});
  ASSERT_FALSE(long_path);
  EXPECT_THAT(long_path.error().message, HasSubstr("longer than"));
}

}  // namespace
}  // namespace drover::kube

#include "kube/plugin/plugin_host.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <set>

#include "base/fake_tree.h"
#include "kube/rpc/channel.h"
#include "kube/rpc/socket_server.h"
#include "kube/testing/machines.h"
#include "protocol/device_plugin.grpc.pb.h"

namespace drover::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;
using testing::uuid;
using namespace std::chrono_literals;

/// Takes registrations, as the kubelet does at its own socket.
class FakeKubelet : public v1beta1::Registration::Service {
 public:
  explicit FakeKubelet(std::string folder) : folder_(std::move(folder)) { start(); }

  grpc::Status Register(grpc::ServerContext*, const v1beta1::RegisterRequest* request,
                        v1beta1::Empty*) override {
    const std::lock_guard lock(mutex_);
    if (refuse) return {grpc::StatusCode::INVALID_ARGUMENT, "no more plugins today"};
    endpoints_[request->resource_name()] = request->endpoint();
    ++registrations_;
    return grpc::Status::OK;
  }

  void start() { server_ = *SocketServer::listen(folder_ + "/kubelet.sock", {this}); }

  /// Forgets everything, and removes all sockets of the folder, as a kubelet does that starts again.
  void restart() {
    server_.reset();
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [resource, endpoint] : endpoints_) ::unlink((folder_ + "/" + endpoint).c_str());
      endpoints_.clear();
    }
    start();
  }

  /// Where a resource is served; waits for its registration.
  std::string socket_of(const std::string& resource) {
    std::string endpoint;
    wait_until([&] {
      const std::lock_guard lock(mutex_);
      const auto found = endpoints_.find(resource);
      return found != endpoints_.end() && !(endpoint = found->second).empty();
    });
    return folder_ + "/" + endpoint;
  }

  int registrations() {
    const std::lock_guard lock(mutex_);
    return registrations_;
  }

  static void wait_until(const std::function<bool()>& holds) {
    const auto end = std::chrono::steady_clock::now() + 30s;
    while (!holds() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(5ms);
    EXPECT_TRUE(holds());
  }

  std::atomic<bool> refuse = false;

 private:
  std::string folder_;
  std::mutex mutex_;
  std::map<std::string, std::string> endpoints_;
  int registrations_ = 0;
  std::optional<SocketServer> server_;
};

/// The kubelet's side of one plugin.
class Client {
 public:
  explicit Client(const std::string& socket) : stub_(v1beta1::DevicePlugin::NewStub(connect_to(socket))) {}

  grpc::Status allocate(const std::vector<std::string>& ids, v1beta1::AllocateResponse* answer) {
    v1beta1::AllocateRequest request;
    auto& container = *request.add_container_requests();
    for (const auto& id : ids) container.add_devices_ids(id);
    grpc::ClientContext context;
    give_up_after(context, 10s);
    return stub_->Allocate(&context, request, answer);
  }

  v1beta1::DevicePlugin::Stub& stub() { return *stub_; }

 private:
  std::unique_ptr<v1beta1::DevicePlugin::Stub> stub_;
};

/// The list of devices, as it comes.
class Watch {
 public:
  explicit Watch(Client& client) {
    give_up_after(context_, 30s);
    stream_ = client.stub().ListAndWatch(&context_, {});
  }
  ~Watch() { context_.TryCancel(); }

  /// "GPU-1 Healthy 0" of each.
  std::vector<std::string> next() {
    v1beta1::ListAndWatchResponse list;
    std::vector<std::string> shown;
    if (!stream_->Read(&list)) return {"the stream has ended"};
    for (const auto& device : list.devices())
      shown.push_back(fmt::format("{} {} {}", device.id(), device.health(), device.topology().nodes(0).id()));
    return shown;
  }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1beta1::ListAndWatchResponse>> stream_;
};

class PluginHostTest : public ::testing::Test {
 protected:
  PluginHostTest() {
    facts_.inventory = testing::machine(2);
    for (int i = 0; i < 2; ++i)
      facts_.nodes[uuid(i)] = {{fmt::format("/dev/nvidia{}", i), 195, static_cast<unsigned>(i)}};
    facts_.parts.cdi = CdiSupport::kNo;
    pool_.update(facts_);
    pool_.saw({}, Usage::Clock::now());
    options_.folder = tree_.root();
    options_.poll_interval = 10ms;
    options_.info = [](const auto&) {};
    options_.warn = [this](const std::string& text) {
      const std::lock_guard lock(mutex_);
      warnings_.push_back(text);
    };
  }

  std::vector<std::string> warnings() {
    const std::lock_guard lock(mutex_);
    return warnings_;
  }

  FakeTree tree_;
  PoolFacts facts_;
  Pool pool_{PluginConfig{}};
  PluginHostOptions options_;

 private:
  std::mutex mutex_;
  std::vector<std::string> warnings_;
};

TEST_F(PluginHostTest, RegistersAndServes) {
  FakeKubelet kubelet(tree_.root());
  const PluginHost host(pool_, options_);
  Client client(kubelet.socket_of("nvidia.com/gpu"));
  Watch watch(client);
  EXPECT_THAT(watch.next(), ElementsAre(uuid(0) + " Healthy 0", uuid(1) + " Healthy 1"));
  facts_.troubles[uuid(1)] = "XID 79";
  pool_.update(facts_);
  EXPECT_THAT(watch.next(), ElementsAre(uuid(0) + " Healthy 0", uuid(1) + " Unhealthy 1"));
  v1beta1::AllocateResponse answer;
  ASSERT_TRUE(client.allocate({uuid(0)}, &answer).ok());
  EXPECT_EQ(answer.container_responses(0).devices(0).host_path(), "/dev/nvidia0");
  EXPECT_EQ(answer.container_responses(0).devices(0).permissions(), "rw");
  EXPECT_EQ(client.allocate({uuid(1)}, &answer).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(client.allocate({"GPU-x"}, &answer).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(client.allocate({}, &answer).ok());
}

/// For the kubelet then writes down that they are nobody's.
TEST_F(PluginHostTest, TellsTheSameDevicesAgainWhenSomebodyHasLeftOne) {
  FakeKubelet kubelet(tree_.root());
  const PluginHost host(pool_, options_);
  Client client(kubelet.socket_of("nvidia.com/gpu"));
  Watch watch(client);
  const auto told = watch.next();
  pool_.saw({{"default", "pod", "main", {{"nvidia.com/gpu", {uuid(0)}}}, {}}}, Usage::Clock::now());
  pool_.saw({}, Usage::Clock::now());
  EXPECT_EQ(watch.next(), told);
  facts_.troubles[uuid(1)] = "XID 79";
  pool_.update(facts_);
  EXPECT_NE(watch.next(), told) << "and only once";
}

TEST_F(PluginHostTest, PrefersThroughTheApi) {
  FakeKubelet kubelet(tree_.root());
  const PluginHost host(pool_, options_);
  Client client(kubelet.socket_of("nvidia.com/gpu"));
  v1beta1::PreferredAllocationRequest request;
  auto& container = *request.add_container_requests();
  for (const auto* id : {"GPU-lost", "GPU-00000001", "GPU-00000000"}) container.add_available_deviceids(id);
  container.set_allocation_size(2);
  grpc::ClientContext context;
  v1beta1::PreferredAllocationResponse answer;
  ASSERT_TRUE(client.stub().GetPreferredAllocation(&context, request, &answer).ok());
  EXPECT_THAT(answer.container_responses(0).deviceids(), UnorderedElementsAre(uuid(0), uuid(1)));
}

TEST_F(PluginHostTest, ComesBackAfterTheKubeletHasStartedAgain) {
  FakeKubelet kubelet(tree_.root());
  const PluginHost host(pool_, options_);
  for (int i = 0; i < 5; ++i) {
    Client client(kubelet.socket_of("nvidia.com/gpu"));
    Watch watch(client);
    EXPECT_EQ(watch.next().size(), 2U);
    kubelet.restart();
  }
  EXPECT_GE(kubelet.registrations(), 5);
}

TEST_F(PluginHostTest, WaitsForAKubeletThatComesLate) {
  const PluginHost host(pool_, options_);
  std::this_thread::sleep_for(50ms);
  FakeKubelet kubelet(tree_.root());
  EXPECT_THAT(kubelet.socket_of("nvidia.com/gpu"), HasSubstr("drover-gpu-"));
}

TEST_F(PluginHostTest, HearsOfAKubeletThatStartsWithoutLooking) {
  options_.poll_interval = 1h;
  const PluginHost host(pool_, options_);
  std::this_thread::sleep_for(50ms);
  FakeKubelet kubelet(tree_.root());
  kubelet.socket_of("nvidia.com/gpu");
  kubelet.restart();
  kubelet.socket_of("nvidia.com/gpu");
}

TEST_F(PluginHostTest, RegistersAtOnceWhenTheKubeletDropsIt) {
  options_.poll_interval = 1h;
  FakeKubelet kubelet(tree_.root());
  const PluginHost host(pool_, options_);
  Client client(kubelet.socket_of("nvidia.com/gpu"));
  for (int dropped = 1; dropped < 3; ++dropped) {
    {
      Watch watch(client);
      EXPECT_EQ(watch.next().size(), 2U);
      EXPECT_EQ(kubelet.registrations(), dropped);
    }
    FakeKubelet::wait_until([&] { return kubelet.registrations() > dropped; });
  }
}

TEST_F(PluginHostTest, MakesItsSocketAgainWhenSomebodyRemovedIt) {
  FakeKubelet kubelet(tree_.root());
  const PluginHost host(pool_, options_);
  const auto socket = kubelet.socket_of("nvidia.com/gpu");
  ::unlink(socket.c_str());
  FakeKubelet::wait_until([&] { return ::access(socket.c_str(), F_OK) == 0 && kubelet.registrations() > 1; });
}

TEST_F(PluginHostTest, SaysOnceWhyItIsNotTaken) {
  FakeKubelet kubelet(tree_.root());
  kubelet.refuse = true;
  const PluginHost host(pool_, options_);
  FakeKubelet::wait_until([&] { return !warnings().empty(); });
  EXPECT_THAT(warnings(), ElementsAre(HasSubstr("no more plugins today")));
  kubelet.refuse = false;
  kubelet.socket_of("nvidia.com/gpu");
}

TEST_F(PluginHostTest, TriesAgainSoonWhenItIsNotTaken) {
  options_.poll_interval = 1h;
  FakeKubelet kubelet(tree_.root());
  kubelet.refuse = true;
  const PluginHost host(pool_, options_);
  FakeKubelet::wait_until([&] { return !warnings().empty(); });
  kubelet.refuse = false;
  kubelet.socket_of("nvidia.com/gpu");
}

TEST(PluginSocketName, IsShortAndItsOwn) {
  std::set<std::string> names;
  for (const auto& resource : {std::string("a.b/gpu"), std::string("c.d/gpu"), "a.b/" + std::string(63, 'x'),
                               "a.b/" + std::string(62, 'x') + "y"})
    names.insert(plugin_socket_name(resource));
  EXPECT_EQ(names.size(), 4U);
  for (const auto& name : names) EXPECT_LT(std::string(kPluginFolder).size() + name.size() + 6, 108U);
}

}  // namespace
}  // namespace drover::kube

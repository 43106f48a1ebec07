#include "kube/dra/driver.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/fake_tree.h"
#include "cdi/registry.h"
#include "kube/dra/device_status.h"
#include "kube/dra/testing/fake_claims.h"
#include "kube/dra/testing/locked_slices.h"
#include "kube/plugin/pool.h"
#include "kube/rpc/channel.h"
#include "kube/testing/machines.h"
#include "protocol/dra_health_v1.grpc.pb.h"
#include "protocol/dra_health_v1alpha1.grpc.pb.h"
#include "protocol/dra_v1.grpc.pb.h"
#include "protocol/dra_v1beta1.grpc.pb.h"
#include "protocol/plugin_registration.grpc.pb.h"

namespace drover::kube::dra {
namespace {

namespace v1_api = k8s::io::kubelet::pkg::apis::dra::v1;
namespace v1beta1_api = k8s::io::kubelet::pkg::apis::dra::v1beta1;

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::SizeIs;

bool soon(const std::function<bool()>& condition) {
  for (int i = 0; i < 12000 && !condition(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return condition();
}

View machine_view(int gpus) {
  View view;
  view.inventory = kube::testing::machine(gpus);
  return view;
}

class DriverTest : public ::testing::Test {
 protected:
  void start() {
    driver.reset();
    DriverOptions options{.node = "node1",
                          .kubelet_folder = tree / "kubelet",
                          .cdi_folder = tree / "cdi",
                          .poll_interval = std::chrono::milliseconds(20)};
    options.prepared = [this](auto) { ++prepared; };
    options.take = [this](const std::set<std::string>& uuids) -> Status {
      const std::scoped_lock lock(mutex);
      if (!refusal.empty()) return fail(ErrorKind::kConflict, refusal);
      taken = uuids;
      return {};
    };
    driver = std::make_unique<Driver>(options, claims, slices, [this](bool guarded) {
      if (auto* hook = while_preparing.exchange(nullptr)) (*hook)();
      GpuEdits edits;
      if (guarded) edits.guard.program = "/hook";
      for (int i = 0; i < 4; ++i)
        edits.of_gpu[kube::testing::uuid(i)].device_nodes = {
            {.path = "/dev/nvidia" + std::to_string(i), .type = "c", .major = 195, .minor = i}};
      return edits;
    });
    driver->update(machine_view(4));
    ASSERT_TRUE(soon([&] { return std::filesystem::exists(registration_socket()); }));
  }
  void SetUp() override { start(); }
  std::set<std::string> in_use() {
    const std::scoped_lock lock(mutex);
    return taken;
  }

  std::string driver_socket() const { return tree / "kubelet/plugins/gpu.nvidia.com/dra.sock"; }
  std::string registration_socket() const {
    return tree / "kubelet/plugins_registry/gpu.nvidia.com-reg.sock";
  }

  template <typename Request>
  static void add_claim(Request& request, const std::string& name) {
    auto& claim = *request.add_claims();
    claim.set_namespace_("team-a");
    claim.set_name(name);
    claim.set_uid("uid-" + name);
  }
  void allocate(const std::string& name, const std::vector<nlohmann::json>& results) {
    claims->add({"team-a", name, "uid-" + name}, results);
  }

  v1_api::NodePrepareResourcesResponse prepare(const v1_api::NodePrepareResourcesRequest& request) const {
    grpc::ClientContext context;
    give_up_after(context, std::chrono::seconds(20));
    v1_api::NodePrepareResourcesResponse response;
    const auto status = v1_api::DRAPlugin::NewStub(connect_to(driver_socket()))
                            ->NodePrepareResources(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  v1_api::NodePrepareResourceResponse prepare(const std::string& name) const {
    v1_api::NodePrepareResourcesRequest request;
    add_claim(request, name);
    return prepare(request).claims().at("uid-" + name);
  }
  std::string unprepare(const std::string& name) const {
    grpc::ClientContext context;
    v1_api::NodeUnprepareResourcesRequest request;
    add_claim(request, name);
    v1_api::NodeUnprepareResourcesResponse response;
    const auto status = v1_api::DRAPlugin::NewStub(connect_to(driver_socket()))
                            ->NodeUnprepareResources(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.claims().at("uid-" + name).error();
  }
  void notify(bool done, const std::string& error = "") const {
    grpc::ClientContext context;
    pluginregistration::RegistrationStatus status;
    status.set_plugin_registered(done);
    status.set_error(error);
    pluginregistration::RegistrationStatusResponse response;
    ASSERT_TRUE(pluginregistration::Registration::NewStub(connect_to(registration_socket()))
                    ->NotifyRegistrationStatus(&context, status, &response)
                    .ok());
  }

  FakeTree tree;
  std::mutex mutex;                                               ///< of what follows
  std::set<std::string> taken;                                    ///< by claims, as the driver told
  std::string refusal;                                            ///< what it is told when it takes something
  std::atomic<int> prepared = 0;                                  ///< or refused
  std::atomic<std::function<void()>*> while_preparing = nullptr;  ///< called once
  std::shared_ptr<FakeClaims> claims = std::make_shared<FakeClaims>();
  std::shared_ptr<LockedSlices> slices = std::make_shared<LockedSlices>();
  std::unique_ptr<Driver> driver;
};

TEST_F(DriverTest, AnUpdateDoesNotWaitForAClaimThatIsBeingPrepared) {
  allocate("a", {result_of("gpu-0")});
  std::promise<void> reached, go_on, updated;
  std::function<void()> wait = [&] {
    reached.set_value();
    go_on.get_future().wait();
  };
  while_preparing = &wait;
  std::thread preparing([&] {
    v1_api::NodePrepareResourcesRequest request;
    add_claim(request, "a");
    EXPECT_EQ(prepare(request).claims().at("uid-a").error(), "");
  });
  reached.get_future().wait();
  std::thread updating([&] {
    driver->update(machine_view(3));
    updated.set_value();
  });
  EXPECT_EQ(updated.get_future().wait_for(std::chrono::seconds(10)), std::future_status::ready);
  go_on.set_value();
  preparing.join();
  updating.join();
}

TEST_F(DriverTest, IsFoundByTheKubelet) {
  grpc::ClientContext context;
  pluginregistration::PluginInfo info;
  ASSERT_TRUE(pluginregistration::Registration::NewStub(connect_to(registration_socket()))
                  ->GetInfo(&context, {}, &info)
                  .ok());
  EXPECT_EQ(info.type(), "DRAPlugin");
  EXPECT_EQ(info.name(), "gpu.nvidia.com");
  EXPECT_EQ(info.endpoint(), driver_socket());
  EXPECT_THAT(info.supported_versions(), IsSupersetOf({"v1.DRAPlugin", "v1beta1.DRAPlugin"}));
  notify(true);
  EXPECT_TRUE(driver->state().registered);
  notify(false, "no such version");
  EXPECT_FALSE(driver->state().registered);
  EXPECT_THAT(driver->state().registration, HasSubstr("no such version"));
}

TEST_F(DriverTest, PreparesWhatContainerEnginesFind) {
  allocate("a", {result_of("gpu-2"), result_of("gpu-3", {{"share", "500"}}, "s1")});
  const auto answer = prepare("a");
  ASSERT_EQ(answer.error(), "");
  ASSERT_EQ(answer.devices_size(), 2);
  EXPECT_EQ(answer.devices(0).device_name(), "gpu-2");
  EXPECT_EQ(answer.devices(0).pool_name(), "node1");
  EXPECT_THAT(answer.devices(0).request_names(), ElementsAre("gpus"));
  EXPECT_FALSE(answer.devices(0).has_share_id());
  EXPECT_EQ(answer.devices(1).share_id(), "s1");
  const auto registry = cdi::Registry::read({tree / "cdi"});
  EXPECT_THAT(registry.problems(), IsEmpty());
  const auto edits = registry.edits_of({cdi::parse_device_name(answer.devices(0).cdi_device_ids(0)).value()});
  ASSERT_TRUE(edits) << to_string(edits.error());
  ASSERT_THAT(edits->device_nodes, SizeIs(1));
  EXPECT_EQ(edits->device_nodes[0].path, "/dev/nvidia2");
  EXPECT_THAT(in_use(), ElementsAre(kube::testing::uuid(2), kube::testing::uuid(3)));
  EXPECT_EQ(unprepare("a"), "");
  EXPECT_EQ(unprepare("a"), "");
  EXPECT_TRUE(std::filesystem::is_empty(tree / "cdi"));
  EXPECT_THAT(in_use(), IsEmpty());
}

TEST_F(DriverTest, TheClaimsStatusTellsTheTier) {
  const ClaimReference reference{"team-a", "a", "uid-a"};
  const auto tier = [&] { return tier_in_status({{"status", {{"devices", claims->devices(reference)}}}}); };
  allocate("a", {result_of("gpu-3", {{"share", "500"}}, "s1")});
  ASSERT_EQ(prepare("a").error(), "");
  EXPECT_TRUE(soon([&] { return tier() == "guarded"; }));
  allocate("a", {result_of("gpu-3", {{"share", "500"}}, "s1")});  // what was said is lost
  start();
  EXPECT_TRUE(soon([&] { return tier() == "guarded"; }));
  EXPECT_EQ(unprepare("a"), "");
  EXPECT_TRUE(soon([&] { return tier().empty(); }));
}

TEST_F(DriverTest, SpeaksWithOlderKubelets) {
  allocate("a", {result_of("gpu-0")});
  grpc::ClientContext context;
  v1beta1_api::NodePrepareResourcesRequest request;
  add_claim(request, "a");
  v1beta1_api::NodePrepareResourcesResponse response;
  const auto stub = v1beta1_api::DRAPlugin::NewStub(connect_to(driver_socket()));
  ASSERT_TRUE(stub->NodePrepareResources(&context, request, &response).ok());
  EXPECT_THAT(response.claims().at("uid-a").devices(0).cdi_device_ids(),
              ElementsAre("k8s.gpu.nvidia.com/claim=uid-a-gpu-0"));
}

TEST_F(DriverTest, SurvivesGarbage) {
  EXPECT_EQ(prepare(v1_api::NodePrepareResourcesRequest()).claims_size(), 0);
  EXPECT_NE(prepare("unknown").error(), "");
  EXPECT_NE(prepare("../../x").error(), "");
  EXPECT_NE(prepare(std::string(100'000, 'x')).error(), "");
  EXPECT_NE(unprepare("../x"), "");
  v1_api::NodePrepareResourcesRequest many;
  for (int i = 0; i < 300; ++i) add_claim(many, "c" + std::to_string(i));
  grpc::ClientContext context;
  v1_api::NodePrepareResourcesResponse response;
  const auto stub = v1_api::DRAPlugin::NewStub(connect_to(driver_socket()));
  EXPECT_EQ(stub->NodePrepareResources(&context, many, &response).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  v1_api::NodePrepareResourcesRequest mixed;
  allocate("a", {result_of("gpu-0")});
  for (const char* name : {"unknown", "a", "a"}) add_claim(mixed, name);
  const auto answers = prepare(mixed);
  EXPECT_NE(answers.claims().at("uid-unknown").error(), "");
  EXPECT_EQ(answers.claims().at("uid-a").devices_size(), 1);
}

TEST_F(DriverTest, GivesAGpuOnceHoweverManyAskAtOnce) {
  for (int i = 0; i < 8; ++i) allocate("c" + std::to_string(i), {result_of("gpu-0")});
  std::atomic<int> given = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 16; ++i)
      threads.emplace_back([&, i] {
        if (prepare("c" + std::to_string(i % 8)).error().empty()) ++given;
      });
  }
  // The winner was asked for twice, and may have been late with one of them only if the other was given.
  EXPECT_EQ(given, 2);
  EXPECT_THAT(in_use(), SizeIs(1));
}

TEST_F(DriverTest, LivesOnAfterACancelledCall) {
  allocate("a", {result_of("gpu-0")});
  std::atomic<bool> waiting = false;
  std::atomic<bool> go = false;
  claims->while_asked = [&] {
    waiting = true;
    soon([&] { return go.load(); });
  };
  grpc::ClientContext context;
  std::jthread call([&] {
    v1_api::NodePrepareResourcesRequest request;
    add_claim(request, "a");
    v1_api::NodePrepareResourcesResponse response;
    EXPECT_EQ(v1_api::DRAPlugin::NewStub(connect_to(driver_socket()))
                  ->NodePrepareResources(&context, request, &response)
                  .error_code(),
              grpc::StatusCode::CANCELLED);
  });
  ASSERT_TRUE(soon([&] { return waiting.load(); }));
  context.TryCancel();
  call.join();
  // The pod is gone, so the kubelet takes the claim back; the call under way must not come after that.
  EXPECT_EQ(unprepare("a"), "");
  go = true;
  start();
  EXPECT_THAT(in_use(), IsEmpty());
  claims->while_asked = nullptr;
}

TEST_F(DriverTest, KnowsItsClaimsAfterARestart) {
  allocate("a", {result_of("gpu-0")});
  ASSERT_EQ(prepare("a").error(), "");
  claims->down = true;
  start();
  EXPECT_EQ(prepare("a").devices_size(), 1);
  EXPECT_THAT(in_use(), ElementsAre(kube::testing::uuid(0)));
  EXPECT_TRUE(soon([&] { return !driver->state().recovery.empty(); }));
  claims->down = false;
  claims->remove({"team-a", "a", "uid-a"});
  start();
  EXPECT_TRUE(soon([&] { return in_use().empty() && std::filesystem::is_empty(tree / "cdi"); }));
}

TEST_F(DriverTest, GivesNothingThatSomethingElseHas) {
  allocate("a", {result_of("gpu-1")});
  refusal = "GPU 1 is in use as nvidia.com/gpu";
  EXPECT_THAT(prepare("a").error(), HasSubstr(refusal));
  EXPECT_FALSE(std::filesystem::exists(tree / "cdi") && !std::filesystem::is_empty(tree / "cdi"));
  refusal.clear();
  EXPECT_EQ(prepare("a").error(), "");
  EXPECT_EQ(prepared, 2);
}

TEST_F(DriverTest, LeavesBehindWhatItsClaimsHave) {
  const DriverOptions options{.kubelet_folder = tree / "kubelet", .cdi_folder = tree / "cdi"};
  const auto inventory = kube::testing::machine(4);
  EXPECT_THAT(gpus_left_in_use(options, inventory).value(), IsEmpty());
  allocate("a", {result_of("gpu-1")});
  ASSERT_EQ(prepare("a").error(), "");
  driver.reset();
  EXPECT_THAT(gpus_left_in_use(options, inventory).value(), ElementsAre(kube::testing::uuid(1)));
  const auto checkpoint = tree / "kubelet/plugins/gpu.nvidia.com/checkpoint.json";
  ASSERT_TRUE(write_file(checkpoint, "damage"));
  EXPECT_THAT(gpus_left_in_use(options, inventory).value(), ElementsAre(kube::testing::uuid(1)));
  std::filesystem::remove(checkpoint);
  EXPECT_THAT(gpus_left_in_use(options, inventory).value(), ElementsAre(kube::testing::uuid(1)));
}

TEST_F(DriverTest, MakesItsSocketsAnew) {
  for (const auto& path : {driver_socket(), registration_socket()}) {
    ::unlink(path.c_str());
    EXPECT_TRUE(soon([&] { return std::filesystem::exists(path); }));
  }
  EXPECT_TRUE(soon([&] {
    std::error_code again;  // the driver may just have made something in there
    std::filesystem::remove_all(tree / "kubelet", again);
    return !again;
  }));
  EXPECT_TRUE(soon([&] {
    return std::filesystem::exists(registration_socket()) && std::filesystem::exists(driver_socket());
  }));
  EXPECT_NE(prepare("unknown").error(), "");
}

TEST_F(DriverTest, PublishesWhatThereIsAndAgainWhenTheKubeletDeletedIt) {
  EXPECT_TRUE(
      soon([&] { return slices->seen() == std::set<std::string>{"gpu-0", "gpu-1", "gpu-2", "gpu-3"}; }));
  auto view = machine_view(4);
  view.troubles[kube::testing::uuid(1)] = {
      {"gpu.nvidia.com/xid", "79", Effect::kNoSchedule, {}, "fell off the bus"}};
  driver->update(view);
  EXPECT_TRUE(soon([&] { return slices->text().find("gpu.nvidia.com/xid") != std::string::npos; }));
  slices->wipe();
  notify(true);
  EXPECT_TRUE(soon([&] { return slices->seen().has_value(); }));
}

TEST_F(DriverTest, TellsTheSchedulerAtOnceWhatALimitHasTaken) {
  Pool pool(PluginConfig(), true, [&] {
    auto view = machine_view(4);
    for (const auto& [uuid, resources] : pool.holders())
      view.troubles[uuid].push_back(
          {"gpu.nvidia.com/in-use", "", Effect::kNoSchedule, {}, "in use as " + *resources.begin()});
    driver->update(std::move(view));
  });
  PoolFacts facts;
  facts.inventory = kube::testing::machine(4);
  facts.nodes[kube::testing::uuid(2)] = {{"/dev/nvidia2", 195, 2}};
  pool.update(facts);
  pool.saw({}, Usage::Clock::now());
  ASSERT_TRUE(soon([&] { return slices->seen().has_value(); }));
  ASSERT_TRUE(pool.allocate("nvidia.com/gpu", {kube::testing::uuid(2)}));
  // Nothing else tells it: the next look at the slices is a minute away.
  EXPECT_TRUE(soon([&] { return slices->text().find("gpu.nvidia.com/in-use") != std::string::npos; }));
}

TEST_F(DriverTest, LeavesOutWhatNobodyIsToHaveWhereTheApiServerKnowsNoTaints) {
  slices->unknown_fields = {"taints"};
  auto view = machine_view(4);
  view.troubles[kube::testing::uuid(1)] = {
      {"gpu.nvidia.com/xid", "79", Effect::kNoSchedule, {}, "fell off the bus"}};
  driver->update(view);
  EXPECT_TRUE(soon([&] { return slices->seen() == std::set<std::string>{"gpu-0", "gpu-2", "gpu-3"}; }));
  driver->update(machine_view(4));
  EXPECT_TRUE(soon([&] { return slices->seen() && slices->seen()->size() == 4; }));
}

View warned_view() {
  auto view = machine_view(4);
  view.troubles[kube::testing::uuid(1)] = {
      {"gpu.nvidia.com/xid", "31", Effect::kNone, {}, "a program's fault"}};
  view.troubles[kube::testing::uuid(2)] = {
      {"gpu.nvidia.com/xid", "79", Effect::kNoSchedule, {}, "fell off the bus"}};
  return view;
}

TEST_F(DriverTest, WarnsInTheSlicesWhereTheApiServerTakesIt) {
  slices->set_server(ServerVersion{1, 35});
  driver->update(warned_view());
  EXPECT_TRUE(soon([&] { return slices->text().find(R"("effect":"None")") != std::string::npos; }));
  EXPECT_EQ(driver->state().slices, "");
}

TEST_F(DriverTest, WarnsNobodyInTheSlicesOfAnOlderApiServer) {
  for (const auto& server : {std::optional(ServerVersion{1, 34}), std::optional<ServerVersion>()}) {
    slices->set_server(server);
    start();
    driver->update(warned_view());
    EXPECT_TRUE(soon([&] { return slices->text().find(R"("value":"79")") != std::string::npos; }));
    EXPECT_EQ(slices->text().find(R"("effect":"None")"), std::string::npos);
    EXPECT_EQ(driver->state().slices, "");
    slices->wipe();
  }
}

TEST_F(DriverTest, AsksTheApiServerWhatItTakesAgainWhenItHasRefused) {
  slices->set_server(ServerVersion{1, 36});
  driver->update(warned_view());
  EXPECT_TRUE(soon([&] { return slices->text().find(R"("effect":"None")") != std::string::npos; }));
  slices->set_server(ServerVersion{1, 34});
  slices->wipe();
  notify(true);  // as the kubelet does that has wiped them
  EXPECT_TRUE(soon([&] { return !driver->state().slices.empty(); }));
  EXPECT_TRUE(soon([&] { return slices->seen().has_value() && driver->state().slices.empty(); }));
  EXPECT_EQ(slices->text().find(R"("effect":"None")"), std::string::npos);
}

template <typename Stub, typename Request, typename Response>
void watch_health(const std::string& socket, Driver& driver, int unhealthy) {
  grpc::ClientContext context;
  const auto stream = Stub::NewStub(connect_to(socket))->NodeWatchResources(&context, Request());
  Response response;
  ASSERT_TRUE(stream->Read(&response));
  ASSERT_EQ(response.devices_size(), 4);
  EXPECT_EQ(response.devices(3).device().pool_name(), "node1");
  EXPECT_NE(response.devices(1).health(), unhealthy);
  auto view = machine_view(4);
  view.troubles[kube::testing::uuid(1)] = {
      {"gpu.nvidia.com/xid", "79", Effect::kNoSchedule, {}, "fell off the bus"}};
  driver.update(view);
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.devices(1).health(), unhealthy);
  EXPECT_EQ(response.devices(1).message(), "fell off the bus");
  EXPECT_GT(response.devices(1).last_updated_time(), 1'700'000'000);
  driver.update(machine_view(4));
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_NE(response.devices(1).health(), unhealthy);
}

TEST_F(DriverTest, TellsOfTheHealthOfDevices) {
  watch_health<v1::DRAResourceHealth, v1::NodeWatchResourcesRequest, v1::NodeWatchResourcesResponse>(
      driver_socket(), *driver, v1::UNHEALTHY);
  watch_health<v1alpha1::DRAResourceHealth, v1alpha1::NodeWatchResourcesRequest,
               v1alpha1::NodeWatchResourcesResponse>(driver_socket(), *driver, v1alpha1::UNHEALTHY);
}

TEST(DriverNames, AreRefusedWhenTheyAreNone) {
  FakeTree tree;
  Driver driver({.node = "Not A Node", .kubelet_folder = tree / "kubelet", .cdi_folder = tree / "cdi"},
                std::make_shared<FakeClaims>(), std::make_shared<FakeSlices>(),
                [](bool) { return GpuEdits(); });
  driver.update(machine_view(1));
  EXPECT_TRUE(soon([&] { return !driver.state().slices.empty(); }));
  EXPECT_THAT(driver.state().slices, HasSubstr("'Not A Node'"));
}

}  // namespace
}  // namespace drover::kube::dra

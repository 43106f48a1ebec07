// GPUs that pods share by limits, and are held to their parts of: what each is given, and when somebody is
// asked to see to it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kube/plugin/pool.h"
#include "kube/testing/machines.h"

namespace drover::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::machine;
using testing::uuid;

PluginConfig config_of_mps() {
  PluginConfig config;
  config.resources = {{"x/gpu", "*"}, {"x/whole", "*"}};
  config.shares = {
      {.resource = "x/gpu", .replicas = 4, .rename = "x/quarter", .devices = {"0"}, .way = ShareWay::kMps}};
  config.refuse_several_shares = true;
  return config;
}

PoolFacts two_facts() {
  PoolFacts made;
  made.inventory = machine(2);
  made.inventory.devices[0].memory_bytes = (40ULL << 30) + 1;
  for (unsigned i = 0; i < 2; ++i)
    made.nodes[uuid(static_cast<int>(i))] = {{"/dev/nvidia" + std::to_string(i), 195, i}};
  made.parts.cdi = CdiSupport::kYes;
  return made;
}

TEST(ReplicaShares, AreOfThoseGpusThatTheConfigurationNames) {
  const auto devices = two_facts().inventory.devices;
  EXPECT_EQ(replica_share(devices[0], "x/quarter", config_of_mps()),
            (ReplicaShare{uuid(0), ShareWay::kMps, 250, 10240}));
  EXPECT_EQ(replica_share(devices[0], "x/whole", config_of_mps()), std::nullopt);
  EXPECT_EQ(replica_share(devices[1], "x/gpu", config_of_mps()), std::nullopt);
  auto slices = config_of_mps();
  slices.shares[0].way = ShareWay::kTimeSlices;
  EXPECT_EQ(replica_share(devices[0], "x/quarter", slices), std::nullopt);
}

TEST(ReplicaShares, ADaemonIsThereBeforeAContainerIsMade) {
  std::vector<ReplicaShare> asked;
  Status answer;
  Pool pool(config_of_mps(), true, {}, {}, {},
            [&](const ReplicaShare& share, const std::string& id, ContainerGrant* grant) {
              EXPECT_EQ(id, uuid(0) + (asked.size() < 2 ? "::2" : "::1"));
              if (grant != nullptr) add_mps({"/mps/pipe", "/mps/shm"}, *grant);
              asked.push_back(share);
              EXPECT_TRUE(pool.holders().contains(share.uuid)) << "it is somebody's by then";
              return answer;
            });
  pool.saw({}, Usage::Clock::now());
  pool.update(two_facts());
  EXPECT_TRUE(pool.is_asked_at_start());
  const auto granted = pool.allocate("x/quarter", {uuid(0) + "::2"});
  ASSERT_TRUE(granted) << to_string(granted.error());
  EXPECT_EQ(granted->environment.at("CUDA_MPS_PIPE_DIRECTORY"), "/tmp/nvidia-mps");
  EXPECT_THAT(granted->mounts, ElementsAre(GrantedMount{"/tmp/nvidia-mps", "/mps/pipe", false},
                                           GrantedMount{"/dev/shm", "/mps/shm", true}));
  EXPECT_TRUE(pool.start("x/quarter", {uuid(0) + "::2"}));
  EXPECT_EQ(asked.size(), 2U);
  const auto whole = pool.allocate("x/whole", {uuid(1)});
  ASSERT_TRUE(whole);
  EXPECT_FALSE(whole->environment.contains("CUDA_MPS_PIPE_DIRECTORY"));
  EXPECT_EQ(asked.size(), 2U);
  const auto two = pool.allocate("x/quarter", {uuid(0) + "::0", uuid(0) + "::1"});
  ASSERT_FALSE(two);
  EXPECT_THAT(two.error().message, HasSubstr("maximum request size"));
  answer = fail(ErrorKind::kTimeout, "it does not answer");
  EXPECT_FALSE(pool.allocate("x/quarter", {uuid(0) + "::1"}));
}

TEST(ReplicaShares, AreByMemoryAsManyAsFit) {
  auto config = config_of_mps();
  config.shares[0].way = ShareWay::kGuard;
  auto facts = two_facts();
  auto& gpu = facts.inventory.devices[0];
  const auto offered = [&] {
    for (const auto& resource : offer(facts.inventory, config, {}, {}))
      if (resource.name == "x/quarter") return resource.devices.size();
    return std::size_t{0};
  };
  EXPECT_EQ(replica_share(gpu, "x/quarter", config), (ReplicaShare{uuid(0), ShareWay::kGuard, 250, 10240}));
  config.shares[0].compute = 20;
  EXPECT_EQ(replica_share(gpu, "x/quarter", config), (ReplicaShare{uuid(0), ShareWay::kGuard, 200, 10240}));
  config.shares[0].compute.reset();
  config.shares[0].replicas = 0;
  config.shares[0].memory = 12ULL << 30;
  EXPECT_EQ(replica_share(gpu, "x/quarter", config), (ReplicaShare{uuid(0), ShareWay::kGuard, 300, 12288}));
  EXPECT_EQ(offered(), 3U);
  config.shares[0].compute = 60;
  EXPECT_EQ(replica_share(gpu, "x/quarter", config), (ReplicaShare{uuid(0), ShareWay::kGuard, 600, 12288}));
  EXPECT_EQ(offered(), 1U);
  for (const auto memory : {std::optional<std::uint64_t>(8ULL << 30), std::optional<std::uint64_t>()}) {
    gpu.memory_bytes = memory;  // less, and nobody knows
    EXPECT_EQ(replica_share(gpu, "x/quarter", config), std::nullopt);
    EXPECT_EQ(offered(), 0U);
  }
}

TEST(ReplicaShares, AGuardedContainerHasTheDeviceOfItsPages) {
  auto config = config_of_mps();
  config.shares[0].way = ShareWay::kGuard;
  config.strategies = {ListStrategy::kCdiCri, ListStrategy::kCdiAnnotations};
  Pool pool(config, true, {}, {}, {},
            [&](const ReplicaShare& share, const std::string&, ContainerGrant* grant) {
              if (grant != nullptr) add_guard(share.uuid, "pages", *grant);
              return Status();
            });
  pool.saw({}, Usage::Clock::now());
  pool.update(two_facts());
  const auto granted = pool.allocate("x/quarter", {uuid(0) + "::2"});
  ASSERT_TRUE(granted) << to_string(granted.error());
  const auto set = set_device({uuid(0)});
  EXPECT_THAT(granted->cdi_devices, ElementsAre("k8s.device-plugin.nvidia.com/replica=pages", set));
  EXPECT_EQ(granted->annotations.at("drover.dev/replica"), "pages");
  EXPECT_EQ(granted->annotations.at("cdi.k8s.io/drover_1"),
            "k8s.device-plugin.nvidia.com/replica=pages," + set);
}

TEST(ReplicaShares, WithoutAnybodyWhoSeesToItNobodyIsGivenOne) {
  Pool pool(config_of_mps());
  pool.saw({}, Usage::Clock::now());
  pool.update(two_facts());
  EXPECT_FALSE(pool.allocate("x/quarter", {uuid(0) + "::0"}));
}

}  // namespace
}  // namespace drover::kube

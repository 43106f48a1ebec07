// GPUs that pods share by MPS and by limits: what each is given, and when a daemon is asked for.

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
      {.resource = "x/gpu", .replicas = 4, .rename = "x/quarter", .devices = {"0"}, .mps = true}};
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

TEST(MpsShares, AreOfThoseGpusThatTheConfigurationNames) {
  const auto devices = two_facts().inventory.devices;
  EXPECT_EQ(mps_share_of(devices[0], "x/quarter", config_of_mps()), (MpsShare{uuid(0), 25, 10240}));
  EXPECT_EQ(mps_share_of(devices[0], "x/whole", config_of_mps()), std::nullopt);
  EXPECT_EQ(mps_share_of(devices[1], "x/gpu", config_of_mps()), std::nullopt);
  auto slices = config_of_mps();
  slices.shares[0].mps = false;
  EXPECT_EQ(mps_share_of(devices[0], "x/quarter", slices), std::nullopt);
}

TEST(MpsShares, ADaemonIsThereBeforeAContainerIsMade) {
  std::vector<MpsShare> asked;
  Result<share::MpsPlaces> answer = share::MpsPlaces{"/mps/pipe", "/mps/shm"};
  Pool pool(config_of_mps(), true, {}, {}, {}, [&](const MpsShare& share) {
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

TEST(MpsShares, WithoutDaemonsNobodyIsGivenOne) {
  Pool pool(config_of_mps());
  pool.saw({}, Usage::Clock::now());
  pool.update(two_facts());
  EXPECT_FALSE(pool.allocate("x/quarter", {uuid(0) + "::0"}));
}

}  // namespace
}  // namespace drover::kube

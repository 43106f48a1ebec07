#include "gpu/host.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

namespace drover::gpu {
namespace {

TEST(HostTest, TellsOfThisMachine) {
  const auto facts = host_facts("/");
  ASSERT_TRUE(facts) << to_string(facts.error());
  EXPECT_GE(facts->cpus, 1);
  EXPECT_LE(facts->cpus, ::sysconf(_SC_NPROCESSORS_CONF));
  EXPECT_GT(facts->memory_bytes, 64ULL << 20);
  EXPECT_GT(facts->disk_bytes, 0U);
  ASSERT_FALSE(facts->numa.empty());
  std::size_t cpus = 0;
  for (const auto& node : facts->numa) {
    EXPECT_TRUE(std::ranges::is_sorted(node.cpus));
    cpus += node.cpus.size();
  }
  EXPECT_EQ(cpus, static_cast<std::size_t>(facts->cpus));
}

TEST(HostTest, FolderThatIsMissingIsSaid) {
  const auto facts = host_facts("/not/there");
  ASSERT_FALSE(facts);
  EXPECT_EQ(facts.error().kind, ErrorKind::kNotFound);
}

TEST(HostTest, TellsOfASimulatedMachine) {
  const auto facts = simulated_host_facts(std::string(DROVER_SIM_PROFILES) + "/k40m.yaml");
  ASSERT_TRUE(facts) << to_string(facts.error());
  EXPECT_EQ(facts->cpus, 40);
  EXPECT_EQ(facts->memory_bytes, 256904ULL << 20);
  EXPECT_EQ(facts->disk_bytes, 3489713ULL << 20);
  ASSERT_EQ(facts->numa.size(), 2U);
  EXPECT_EQ(facts->numa[1].id, 1);
  EXPECT_EQ(facts->numa[1].cpus.front(), 10);
  EXPECT_TRUE(facts->nics.empty());
}

TEST(HostTest, TellsWhereTheNicsOfASimulatedMachineAre) {
  const auto facts = simulated_host_facts(std::string(DROVER_SIM_PROFILES) + "/dgx-a100.yaml");
  ASSERT_TRUE(facts) << to_string(facts.error());
  ASSERT_EQ(facts->nics.size(), 12U);
  EXPECT_EQ(facts->nics[0], (Nic{"mlx5_0", 3}));
  EXPECT_EQ(facts->nics[2], (Nic{"mlx5_10", 4}));  // in the order of names as text
  EXPECT_EQ(facts->nics[11], (Nic{"mlx5_9", 5}));
}

}  // namespace
}  // namespace drover::gpu

#include "control/gpu_share.h"

#include <gtest/gtest.h>

#include "control/testing/machine.h"

namespace drover::control {
namespace {

using testing::node_with;
using testing::task;

constexpr std::uint64_t kGiB = 1ULL << 30;
constexpr Unsaid kNothing{true, true};

/// 256 CPUs, of which each second NUMA node's are near two of the 8 GPUs; 1007 GiB.
placement::Node dgx() {
  auto node = node_with(8, 256'000);
  node.memory_bytes = 1007 * kGiB;
  for (int id = 0; id < 8; ++id) {
    node.numa.push_back({id, {}});
    for (int cpu = 0; cpu < 32; ++cpu) node.numa.back().cpus.push_back(32 * id + cpu);
    node.inventory.devices[static_cast<std::size_t>(id)].numa_node = id / 2 * 2 + 1;
  }
  return node;
}

struct GpuShares : ::testing::Test {
  placement::Node node = dgx();
  placement::Rules rules;
  GpuShare share;

  workload::Task given(workload::Task one, Unsaid unsaid = kNothing) const {
    std::vector tasks = {std::move(one)};
    give_gpu_shares(tasks, {unsaid}, node, rules, share);
    return tasks.front();
  }
  void expect(const workload::Task& task, std::int64_t cpus, std::uint64_t gib) const {
    EXPECT_EQ(task.resources.milli_cpus, cpus * 1000);
    EXPECT_EQ(task.resources.memory_bytes, gib * kGiB);
  }
};

TEST_F(GpuShares, ATaskGetsThePartOfTheMachineThatItsGpusAre) {
  expect(given(task("t", 1)), 32, 125);
  expect(given(task("t", 2)), 64, 251);
  expect(given(task("t", 8)), 256, 1007);
  expect(given(task("t", 0)), 1, 1);
}

TEST_F(GpuShares, WhatIsSaidStays) {
  auto said = task("t", 1);
  said.resources.milli_cpus = 4000;
  expect(given(said, {.cpus = false, .memory = true}), 4, 125);
  said.resources.memory_bytes = 2 * kGiB;
  expect(given(said, {}), 4, 2);
}

TEST_F(GpuShares, APartOfAGpuGetsThatPartAndNeverLessThanATaskWithoutGpus) {
  auto half = task("t", 1);
  half.resources.share.milli = 500;
  expect(given(half), 16, 62);
  half.resources.share.milli = 3;
  expect(given(half), 1, 1);
  half.resources.share = {.milli = 1000, .memory_bytes = 4 * kGiB};
  expect(given(half), 8, 31);
}

TEST_F(GpuShares, OnASmallMachineNobodyGetsLessThanBefore) {
  node.milli_cpus = 4000;
  node.memory_bytes = 4 * kGiB;
  expect(given(task("t", 1)), 1, 1);
  expect(given(task("t", 8)), 4, 4);
  node.milli_cpus = 20'000;
  expect(given(task("t", 1)), 2, 1);
}

TEST_F(GpuShares, WhoMustBeNearItsGpusGetsNoMoreCpusThanTheyHaveNearThem) {
  auto near = task("t", 1);
  near.resources.cpu_affinity = workload::Preference::kRequire;
  expect(given(near), 16, 125);
}

TEST_F(GpuShares, TheGpusOfAGroupAreNobodysOwn) {
  auto member = task("t", 2);
  member.resources.group = "together";
  expect(given(member), 1, 1);
}

TEST_F(GpuShares, TheAdministratorsWordGoesFirst) {
  share = {.milli_cpus = 30'000, .memory_bytes = 100 * kGiB};
  expect(given(task("t", 1)), 30, 100);
  expect(given(task("t", 2)), 60, 200);
  share = {.milli_cpus = 64'000, .memory_bytes = {}};
  expect(given(task("t", 8)), 256, 1007);
}

TEST_F(GpuShares, ALimitCountsAsASmallerMachine) {
  rules.quotas[{placement::SubjectKind::kUser, "root"}].limit = {
      .gpu_milli = 2000, .milli_cpus = 8000, .memory_bytes = {}};
  expect(given(task("t", 1)), 4, 125);
  rules.queues["default"].limit = {.gpu_milli = {}, .milli_cpus = {}, .memory_bytes = 80 * kGiB};
  expect(given(task("t", 1)), 4, 10);
}

TEST_F(GpuShares, AGangIsGivenNoMoreThanThereIsBesideItsOthers) {
  auto gang = testing::gang("g", 5, 2);
  gang[0].resources.gpus.clear();
  give_gpu_shares(gang, std::vector<Unsaid>(5, kNothing), node, rules, share);
  expect(gang[0], 1, 1);
  for (std::size_t rank = 1; rank < 5; ++rank) expect(gang[rank], 63, 251);
  gang = testing::gang("g", 2, 1);
  gang[0].resources.milli_cpus = 250'000;
  give_gpu_shares(gang, {{.cpus = false, .memory = true}, kNothing}, node, rules, share);
  expect(gang[0], 250, 125);
  expect(gang[1], 6, 125);
}

/// One task for each GPU of the machine, all at once.
int started(bool near, const placement::Node& node) {
  testing::Machine machine(0);
  machine.state = restore({}, node);
  for (int i = 0; i < 8; ++i) {
    auto one = task("t" + std::to_string(i), 1);
    if (near) one.resources.cpu_affinity = workload::Preference::kRequire;
    std::vector tasks = {one};
    give_gpu_shares(tasks, {kNothing}, node, machine.state.rules, {});
    EXPECT_TRUE(machine.submit(tasks));
  }
  int count = 0;
  for (const auto& [id, record] : machine.state.tasks) count += static_cast<int>(!record.gpus.empty());
  return count;
}

TEST_F(GpuShares, OneForEachGpuFitBesideEachOther) {
  EXPECT_EQ(started(false, node), 8);
  EXPECT_EQ(started(true, node), 8);
}

}  // namespace
}  // namespace drover::control

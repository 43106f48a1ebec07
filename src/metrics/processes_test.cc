#include "metrics/processes.h"

#include <gmock/gmock.h>

#include "base/fake_tree.h"

namespace drover::metrics {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(CgroupNames, AreToldOutermostFirst) {
  EXPECT_THAT(cgroup_names("4:memory,cpu:/a/b\n0::/c\n"), ElementsAre("a", "b", "c"));
  EXPECT_THAT(cgroup_names("0::/../../x"), ElementsAre("..", "..", "x"));
  for (const auto* none : {"", "0::/", "\n\n", "::", "/a/b"})
    EXPECT_THAT(cgroup_names(none), IsEmpty()) << none;
}

TEST(ReadProcesses, TellsNamesAndOwners) {
  FakeTree proc;
  proc.file("7/cgroup", "0::/mine\n").file("7/comm", "python3\n");
  proc.file("9/cgroup", "0::/system.slice/x.service\n").file("9/comm", "X\n");
  proc.file("11/cgroup", "0::/" + std::string(100000, 'x')).file("11/comm", "long\n");
  std::map<std::string, gpu::GpuUsage> usage;
  for (const std::uint32_t pid : {7U, 9U, 10U, 11U}) usage["GPU-0"].processes.push_back({.pid = pid});
  const Owner me{{"user", "me"}};
  const auto processes = read_processes(proc.root(), usage, [&](std::string_view cgroups) {
    return cgroup_names(cgroups).front() == "mine" ? me : Owner{};
  });
  ASSERT_THAT(processes, testing::SizeIs(2));  // 10 is gone, 11 is too long
  EXPECT_EQ(processes.at(7).name, "python3");
  EXPECT_EQ(processes.at(7).owner, me);
  EXPECT_EQ(processes.at(9).name, "X");
  EXPECT_THAT(processes.at(9).owner, IsEmpty());
}

TEST(ReadProcesses, TellsWhoseAndHowItIsCalledInside) {
  const std::string id(64, 'a'), forged(64, 'b');
  FakeTree proc;
  proc.file("7/cgroup", "0::/docker-" + id + ".scope/" + forged + "\n").file("7/comm", "x\n");
  proc.file("7/status", "Name:\tNSpid:\\t1\\nUid:\t0\nUid:\t1000\t0\t0\t0\nNSpid:\t7\t4\t1\n");
  proc.file("8/cgroup", "0::/\n").file("8/comm", "y\n").file("8/status", "Name:\ty\nNSpid:\t8\n");
  std::map<std::string, gpu::GpuUsage> usage;
  for (const std::uint32_t pid : {7U, 8U}) usage["GPU-0"].processes.push_back({.pid = pid});
  const auto processes = read_processes(proc.root(), usage, [](std::string_view) { return Owner{}; });
  EXPECT_EQ(processes.at(7).inner_pid, 1U);
  EXPECT_EQ(processes.at(7).uid, 1000U);
  EXPECT_EQ(processes.at(7).container, id) << "what is in a container may name groups as it likes";
  EXPECT_EQ(processes.at(8).inner_pid, std::nullopt);
  EXPECT_EQ(processes.at(8).uid, std::nullopt);
  EXPECT_EQ(processes.at(8).container, "");
}

TEST(ContainerOfGroup, IsItsIdOf64Digits) {
  const std::string id(64, '7');
  EXPECT_EQ(container_of_group("docker-" + id + ".scope"), id);
  EXPECT_EQ(container_of_group("cri-containerd-" + id), id);
  EXPECT_EQ(container_of_group(std::string(63, '7') + "x7"), "");
}

TEST(ProcessState, TellsWhoHangsInTheKernel) {
  FakeTree proc;
  proc.file("7/stat", "7 (a) R (b) D 1 7 7 0\n").file("9/stat", "9 (train) S 1 9\n");
  proc.file("11/stat", "11 (gone) Z 1 11\n").file("12/stat", "12 (half").file("13/stat", "13 (half) ");
  const auto hangs = process_state(proc.root(), 7);
  ASSERT_TRUE(hangs);
  EXPECT_EQ(hangs->name, "a) R (b");
  EXPECT_TRUE(hangs->in_kernel);
  ASSERT_TRUE(process_state(proc.root(), 9));
  EXPECT_FALSE(process_state(proc.root(), 9)->in_kernel);
  for (const pid_t none : {8, 11, 12, 13}) EXPECT_FALSE(process_state(proc.root(), none)) << none;
}

}  // namespace
}  // namespace drover::metrics

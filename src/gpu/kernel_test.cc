#include "gpu/kernel.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <set>

#include "base/fake_tree.h"
#include "base/ranges.h"

namespace drover::gpu {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// A function at the end of a path such as "pci0000:00/0000:00:01.0/0000:04:00.0".
void add_function(FakeTree& tree, const std::string& path, const std::string& device_class = "0x030200",
                  const std::string& numa_node = "0") {
  const auto address = path.substr(path.rfind('/') + 1);
  tree.file("sys/devices/" + path + "/vendor", "0x10de\n");
  tree.file("sys/devices/" + path + "/class", device_class + "\n");
  tree.file("sys/devices/" + path + "/numa_node", numa_node + "\n");
  tree.file("sys/devices/" + path + "/local_cpulist", "0-3,8-11\n");
  tree.link("sys/bus/pci/devices/" + address, "../../../devices/" + path);
}

PciAddress address(const char* text) {
  return parse_pci_address(text).value();
}

TEST(CpuListTest, ReadsWhatTheKernelWrites) {
  EXPECT_THAT(*parse_cpu_list("0-3,8\n"), ElementsAre(0, 1, 2, 3, 8));
  EXPECT_THAT(*parse_cpu_list("\n"), IsEmpty());
  for (const auto* text : {"a", "3-1", "-1", "0-", "0-999999999", "1;2"})
    EXPECT_FALSE(parse_cpu_list(text)) << text;
}

TEST(CpuListTest, WhatIsPrintedReadsBack) {
  EXPECT_TRUE(rc::check([](const std::set<std::uint8_t>& some) {
    const std::vector<int> cpus(some.begin(), some.end());
    RC_ASSERT(parse_cpu_list(format_ranges(cpus)) == cpus);
  }));
}

TEST(KernelTest, KnowsTheFactsOfOneGpu) {
  FakeTree tree;
  add_function(tree, "pci0000:80/0000:80:02.0/0000:82:00.0", "0x030200", "1");
  add_function(tree, "pci0000:80/0000:80:02.0/0000:82:00.1", "0x040300");  // its sound
  tree.file("proc/driver/nvidia/gpus/0000:82:00.0/information",
            "Model:\t\t Tesla K40m\nDevice Minor: \t 3\n");
  const Kernel kernel(tree.root());
  const auto gpu = address("0000:82:00.0");
  EXPECT_THAT(kernel.nvidia_gpus(), ElementsAre(gpu));
  EXPECT_EQ(kernel.minor(gpu), 3);
  EXPECT_EQ(kernel.numa_node(gpu), 1);
  EXPECT_THAT(kernel.cpus(gpu), ElementsAre(0, 1, 2, 3, 8, 9, 10, 11));
  EXPECT_EQ(kernel.pcie_root(gpu), "pci0000:80");
}

TEST(KernelTest, WhatIsNotThereIsAbsent) {
  FakeTree tree;
  add_function(tree, "pci0000:80/0000:82:00.0", "0x030000", "-1");  // a kernel without NUMA
  const Kernel kernel(tree.root());
  EXPECT_EQ(kernel.numa_node(address("0000:82:00.0")), std::nullopt);
  EXPECT_EQ(kernel.minor(address("0000:82:00.0")), std::nullopt);
  EXPECT_EQ(kernel.numa_node(address("0000:01:00.0")), std::nullopt);
  EXPECT_EQ(kernel.pcie_root(address("0000:01:00.0")), std::nullopt);
  EXPECT_THAT(kernel.cpus(address("0000:01:00.0")), IsEmpty());
  EXPECT_THAT(Kernel(tree / "nowhere").nvidia_gpus(), IsEmpty());
}

TEST(KernelTest, TellsHowTwoGpusAreJoined) {
  FakeTree tree;
  const std::string board =
      "pci0000:00/0000:00:02.0/0000:02:00.0";  // root port, then the upstream port of a switch
  add_function(tree, board + "/0000:03:08.0/0000:04:00.0");
  add_function(tree, board + "/0000:03:10.0/0000:05:00.0");
  add_function(tree,
               board + "/0000:03:18.0/0000:06:00.0/0000:07:00.0/0000:08:00.0");  // behind a second switch
  add_function(tree, "pci0000:00/0000:00:03.0/0000:0a:00.0");
  add_function(tree, "pci0000:40/0000:40:01.0/0000:41:00.0");
  add_function(tree, "pci0000:80/0000:80:01.0/0000:81:00.0", "0x030200", "1");
  add_function(tree, "pci0000:c0/0000:c0:01.0/0000:c1:00.0", "0x030200", "-1");
  const Kernel kernel(tree.root());
  const auto level = [&](const char* other) { return kernel.level(address("0000:04:00.0"), address(other)); };
  EXPECT_EQ(level("0000:04:00.0"), PcieLevel::kSameDevice);
  EXPECT_EQ(level("0000:05:00.0"), PcieLevel::kSwitch);
  EXPECT_EQ(level("0000:08:00.0"), PcieLevel::kSwitches);
  EXPECT_EQ(level("0000:0a:00.0"), PcieLevel::kHostBridge);
  EXPECT_EQ(level("0000:41:00.0"), PcieLevel::kSameNuma);
  EXPECT_EQ(level("0000:81:00.0"), PcieLevel::kAcross);
  EXPECT_EQ(level("0000:c1:00.0"), PcieLevel::kUnknown);
  EXPECT_EQ(level("0000:ff:00.0"), PcieLevel::kUnknown);
}

}  // namespace
}  // namespace drover::gpu

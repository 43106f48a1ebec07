#include "gpu/discovery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "base/fake_tree.h"
#include "base/files.h"
#include "sim/profile.h"

namespace drover::gpu {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> messages(const std::vector<Error>& problems) {
  std::vector<std::string> texts;
  for (const auto& problem : problems) texts.push_back(problem.message);
  return texts;
}

/// NVIDIA GPUs as the kernel shows them.
void add_gpu(FakeTree& tree, const std::string& address, const std::string& minor = "") {
  const auto folder = "sys/bus/pci/devices/" + address;
  tree.file(folder + "/vendor", "0x10de\n").file(folder + "/class", "0x030200\n");
  tree.file(folder + "/numa_node", "1\n").file(folder + "/local_cpulist", "4-7\n");
  if (!minor.empty())
    tree.file("proc/driver/nvidia/gpus/" + address + "/information", "Device Minor: \t " + minor + "\n");
}

TEST(DiscoveryTest, MachineWithoutGpusSaysWhy) {
  FakeTree tree;
  const auto inventory = discover(Nvml::load("libnot-there.so.1"), {.kernel = Kernel(tree.root())});
  EXPECT_THAT(inventory.devices, IsEmpty());
  EXPECT_FALSE(inventory.simulated);
  ASSERT_EQ(inventory.problems.size(), 1U);
  EXPECT_EQ(inventory.problems[0].kind, ErrorKind::kNotFound);
}

TEST(DiscoveryTest, GpusThatOnlyTheKernelSeesAreSaid) {
  FakeTree tree;
  add_gpu(tree, "0000:82:00.0");
  add_gpu(tree, "0000:04:00.0");
  const auto inventory = discover(Nvml::load("libnot-there.so.1"), {.kernel = Kernel(tree.root())});
  ASSERT_EQ(inventory.problems.size(), 2U);
  EXPECT_EQ(inventory.problems[1].message,
            "the kernel sees 2 NVIDIA GPUs that the driver does not offer: 0000:04:00.0, 0000:82:00.0");
}

/// The library fails in a different way for each of four GPUs.
class BrokenMachineTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const auto* bus : {"01", "02", "03", "04"}) add_gpu(tree_, std::string("0000:") + bus + ":00.0");
    tree_.file("proc/driver/nvidia/gpus/0000:04:00.0/information", "Device Minor: 9\n");
    inventory_ =
        discover(Nvml::load(FAKE_NVML_FOLDER "/libfake_nvml_broken.so"), {.kernel = Kernel(tree_.root())});
    ASSERT_EQ(inventory_.devices.size(), 4U);
  }
  FakeTree tree_;
  Inventory inventory_;
};

TEST_F(BrokenMachineTest, FailingQueryIsRecordedAndTheGpuStaysFit) {
  const auto& gpu = inventory_.devices[0];
  EXPECT_THAT(messages(gpu.problems), ElementsAre("nvmlDeviceGetSerial: Unknown Error"));
  EXPECT_EQ(gpu.unhealthy, "");
  EXPECT_EQ(gpu.uuid, "GPU-0");
  EXPECT_EQ(gpu.minor, 0);
}

TEST_F(BrokenMachineTest, LostGpuIsUnhealthyAndFoundByElimination) {
  const auto& gpu = inventory_.devices[1];
  EXPECT_EQ(gpu.unhealthy, "the driver has lost it");
  EXPECT_EQ(gpu.uuid, "PCI-0000:02:00.0");
  EXPECT_THAT(messages(gpu.problems), ElementsAre("nvmlDeviceGetHandleByIndex: GPU is lost"));
}

TEST_F(BrokenMachineTest, GpuWithoutUuidIsUnhealthyAndNamedByItsPlace) {
  const auto& gpu = inventory_.devices[2];
  EXPECT_EQ(gpu.unhealthy, "it does not tell its UUID");
  EXPECT_EQ(gpu.uuid, "PCI-0000:03:00.0");
  EXPECT_EQ(gpu.minor, 2);
}

TEST_F(BrokenMachineTest, KernelFillsWhatTheLibraryDoesNotSay) {
  const auto& gpu = inventory_.devices[3];
  EXPECT_EQ(gpu.unhealthy, "");
  EXPECT_EQ(gpu.minor, 9);
  EXPECT_EQ(gpu.numa_node, 1);
  EXPECT_THAT(gpu.cpus, ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(gpu.problems, IsEmpty());
  EXPECT_THAT(inventory_.problems, IsEmpty());
}

TEST_F(BrokenMachineTest, LostGpuThatNobodyKnowsIsNamedByIndex) {
  const auto inventory =
      discover(Nvml::load(FAKE_NVML_FOLDER "/libfake_nvml_broken.so"), {.kernel = std::nullopt});
  EXPECT_EQ(inventory.devices.at(1).uuid, "INDEX-1");
  EXPECT_EQ(inventory.devices.at(3).unhealthy, "nothing tells the number of its device file");
}

/// Discovery over the simulator: what is found must be what the profile says.
class SimulatedMachineTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    file_ = std::string(DROVER_SIM_PROFILES) + "/" + GetParam() + ".yaml";
    ::setenv("DROVER_SIM_PROFILE", file_.c_str(), 1);
    ::setenv("DROVER_SIM_FAULTS", (tree_ / "faults.yaml").c_str(), 1);
  }
  Inventory found() const {
    return discover(Nvml::load(DROVER_SIM_LIBRARY), {.kernel = std::nullopt, .simulation = GetParam()});
  }
  FakeTree tree_;
  std::string file_;
};

TEST_P(SimulatedMachineTest, FindsWhatTheProfileSays) {
  const auto profile = sim::load_profile(file_).value();
  const auto inventory = found();
  EXPECT_EQ(inventory.simulation, GetParam());
  EXPECT_EQ(inventory.driver_version, profile.driver_version);
  EXPECT_EQ(inventory.cuda_version,
            std::to_string(profile.cuda_major) + "." + std::to_string(profile.cuda_minor));
  EXPECT_THAT(messages(inventory.problems), IsEmpty());
  ASSERT_EQ(inventory.devices.size(), profile.gpus.size());
  for (std::size_t i = 0; i < profile.gpus.size(); ++i) {
    const auto& device = inventory.devices[i];
    const auto& gpu = profile.gpus[i];
    EXPECT_EQ(device.uuid, gpu.uuid);
    EXPECT_EQ(device.index, static_cast<int>(i));
    EXPECT_EQ(device.minor, gpu.minor);
    EXPECT_EQ(device.model, gpu.model.name);
    EXPECT_EQ(device.memory_bytes, gpu.model.memory_mib << 20);
    EXPECT_EQ(device.compute_capability,
              (ComputeCapability{gpu.model.compute_major, gpu.model.compute_minor}));
    EXPECT_EQ(device.ecc, gpu.model.ecc);
    EXPECT_EQ(device.pci, (PciAddress{gpu.pci.domain, gpu.pci.bus, gpu.pci.device, 0}));
    EXPECT_EQ(device.numa_node, gpu.numa);
    EXPECT_EQ(device.serial, gpu.serial);
    EXPECT_EQ(device.unhealthy, "");
    EXPECT_THAT(messages(device.problems), IsEmpty());
    const auto node = std::ranges::find(profile.host.numa, gpu.numa, &sim::NumaNode::id);
    EXPECT_EQ(device.cpus, node->cpus);
  }
}

TEST_P(SimulatedMachineTest, LinksAreThoseOfTheProfileAndSymmetric) {
  const auto profile = sim::load_profile(file_).value();
  const auto links = found().links;
  ASSERT_EQ(links.size(), profile.gpus.size());
  for (std::size_t i = 0; i < links.size(); ++i) {
    ASSERT_EQ(links[i].size(), profile.gpus.size());
    EXPECT_EQ(links[i][i], (Link{0, PcieLevel::kSameDevice}));
    for (std::size_t j = 0; j < links.size(); ++j) {
      EXPECT_EQ(links[i][j], links[j][i]);
      if (!profile.links.empty()) EXPECT_EQ(links[i][j].nvlinks, profile.links[i][j]) << i << ", " << j;
      if (i == j) continue;
      EXPECT_NE(links[i][j].pcie, PcieLevel::kUnknown);
      EXPECT_EQ(links[i][j].pcie == PcieLevel::kAcross, profile.gpus[i].numa != profile.gpus[j].numa);
      const bool one_board =
          profile.gpus[i].multi_gpu_board && profile.gpus[i].board == profile.gpus[j].board;
      EXPECT_EQ(links[i][j].pcie == PcieLevel::kSameBoard, one_board);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Profiles, SimulatedMachineTest,
                         testing::Values("k80", "k40m", "minsky", "dgx1-v100", "dgx2", "dgx-a100", "dgx-h100",
                                         "pcie4", "mixed", "k80-396", "m60-396", "h100-615"),
                         [](const auto& info) {
                           auto name = info.param;
                           std::erase(name, '-');
                           return name;
                         });

/// A machine of a rack whose GPUs are one NVLink domain.
class RackTest : public SimulatedMachineTest {
 protected:
  void join(const std::string& fabric) {
    auto text = read_file(file_).value();
    const std::string alone = "fabric: {clique: 0}";
    const auto at = text.find(alone);
    ASSERT_NE(at, std::string::npos);
    tree_.file("rack.yaml", text.replace(at, alone.size(), "fabric: " + fabric));
    ::setenv("DROVER_SIM_PROFILE", (tree_ / "rack.yaml").c_str(), 1);
  }
};

TEST_P(RackTest, TellsTheCliqueThatReachesBeyondTheMachine) {
  EXPECT_EQ(found().devices.at(0).clique, "");
  join("{cluster: 0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9, clique: 32766}");
  for (const auto& device : found().devices)
    EXPECT_EQ(device.clique, "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9.32766");
}

INSTANTIATE_TEST_SUITE_P(Racks, RackTest, testing::Values("dgx-h100"),
                         [](const auto&) { return std::string("dgxh100"); });

/// Faults of one machine with eight GPUs.
class FaultyMachineTest : public SimulatedMachineTest {};

TEST_P(FaultyMachineTest, LostGpuIsUnhealthyAndHidesNobody) {
  tree_.file("faults.yaml", "1: {lost: true}\n");
  const auto inventory = found();
  ASSERT_EQ(inventory.devices.size(), 8U);
  for (const auto& device : inventory.devices) {
    EXPECT_EQ(device.unhealthy.empty(), device.index != 1) << device.unhealthy;
    EXPECT_EQ(device.problems.empty(), device.index != 1);
  }
  EXPECT_EQ(inventory.devices[1].unhealthy, "the driver has lost it");
  EXPECT_EQ(inventory.links.size(), 8U);
}

TEST_P(FaultyMachineTest, EveryQueryMayFailAlone) {
  for (const auto* function :
       {"nvmlDeviceGetName", "nvmlDeviceGetSerial", "nvmlDeviceGetPciInfo", "nvmlDeviceGetMemoryInfo",
        "nvmlDeviceGetCudaComputeCapability", "nvmlDeviceGetEccMode", "nvmlDeviceGetMigMode",
        "nvmlDeviceGetCpuAffinity", "nvmlDeviceGetMemoryAffinity", "nvmlDeviceGetBoardId"}) {
    tree_.file("faults.yaml", std::string("2: {fail: {") + function + ": 999}}\n");
    const auto inventory = found();
    ASSERT_EQ(inventory.devices.size(), 8U) << function;
    const auto& device = inventory.devices[2];
    ASSERT_EQ(device.problems.size(), 1U) << function;
    EXPECT_THAT(device.problems[0].message, HasSubstr(function));
    EXPECT_EQ(device.unhealthy, "") << function;
    EXPECT_FALSE(device.uuid.empty()) << function;
  }
}

TEST_P(FaultyMachineTest, NotSupportedIsNoProblem) {
  tree_.file("faults.yaml", "2: {fail: {nvmlDeviceGetEccMode: 3}}\n");
  const auto inventory = found();
  EXPECT_EQ(inventory.devices.at(2).ecc, std::nullopt);
  EXPECT_THAT(inventory.devices[2].problems, IsEmpty());
}

TEST_P(FaultyMachineTest, NumaNodeFollowsFromTheCpus) {
  tree_.file("faults.yaml",
             "2: {fail: {nvmlDeviceGetMemoryAffinity: 3}}\n5: {fail: {nvmlDeviceGetCpuAffinity: 3}}\n");
  const auto whole = found();
  std::vector<NumaNode> numa;
  const auto profile = sim::load_profile(file_).value();
  for (const auto& node : profile.host.numa) numa.push_back({node.id, node.cpus});
  const auto inventory = discover(Nvml::load(DROVER_SIM_LIBRARY),
                                  {.kernel = std::nullopt, .numa = numa, .simulation = GetParam()});
  EXPECT_EQ(whole.devices.at(2).numa_node, std::nullopt);
  EXPECT_EQ(inventory.devices.at(2).numa_node, 0);
  EXPECT_THAT(whole.devices.at(5).cpus, IsEmpty());
  EXPECT_EQ(inventory.devices.at(5).cpus, numa.at(1).cpus);
}

INSTANTIATE_TEST_SUITE_P(EightGpus, FaultyMachineTest, testing::Values("dgx1-v100"),
                         [](const auto&) { return "dgx1v100"; });

}  // namespace
}  // namespace drover::gpu

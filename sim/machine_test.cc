#include "sim/machine.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace drover::sim {
namespace {

namespace fs = std::filesystem;

constexpr unsigned int kNvidiaMajor = 195;
constexpr uid_t kNobody = 65534;

class MachineTest : public testing::Test {
 protected:
  MachineTest() { fs::create_directories(folder_); }
  ~MachineTest() override {
    for (const char* name : {"DROVER_SIM_PROFILE", "DROVER_SIM_DEV", "DROVER_SIM_FAULTS", "DROVER_SIM_MIG",
                             "DROVER_SIM_LIVE", "DROVER_SIM_VERBOSE"})
      ::unsetenv(name);
    fs::remove_all(folder_);
  }

  Settings with_devices(const std::string& profile) const {
    return {.profile = fs::path(SIM_PROFILES) / (profile + ".yaml"),
            .faults = folder_ / "faults.yaml",
            .devices = folder_};
  }

  /// Indices as the process counts them, and minor numbers.
  static std::vector<std::pair<unsigned int, int>> seen(const Machine& machine) {
    std::vector<std::pair<unsigned int, int>> result;
    for (const auto& device : machine.devices())
      result.emplace_back(machine.index_of(*device), device->gpu->minor);
    return result;
  }

  const fs::path folder_ = fs::path(testing::TempDir()) / ("machine_test_" + std::to_string(::getpid()));
};

TEST_F(MachineTest, SettingsComeFromTheEnvironment) {
  ::setenv("DROVER_SIM_PROFILE", "/p/dgx2.yaml", 1);
  auto settings = settings_from_environment("/lib/libnvidia-ml.so.1");
  EXPECT_EQ(settings.profile, "/p/dgx2.yaml");
  EXPECT_EQ(settings.faults, "/p/faults.yaml");
  EXPECT_EQ(settings.mig, "/p/mig.yaml");
  EXPECT_EQ(settings.live, "/p/live");
  EXPECT_EQ(settings.devices, std::nullopt);
  EXPECT_FALSE(settings.verbose);
  ::setenv("DROVER_SIM_DEV", "/dev/fake", 1);
  ::setenv("DROVER_SIM_FAULTS", "/f.yaml", 1);
  ::setenv("DROVER_SIM_MIG", "/m.yaml", 1);
  EXPECT_EQ(settings_from_environment("/lib/libnvidia-ml.so.1").live, "/live");
  ::setenv("DROVER_SIM_LIVE", "/l/live", 1);
  ::setenv("DROVER_SIM_VERBOSE", "1", 1);
  settings = settings_from_environment("/lib/libnvidia-ml.so.1");
  EXPECT_EQ(settings.devices, "/dev/fake");
  EXPECT_EQ(settings.faults, "/f.yaml");
  EXPECT_EQ(settings.mig, "/m.yaml");
  EXPECT_EQ(settings.live, "/l/live");
  EXPECT_TRUE(settings.verbose);
}

TEST_F(MachineTest, WithoutEnvironmentTheProfileIsBesideTheLibraryAndNodesDecide) {
  const auto settings = settings_from_environment("/usr/local/nvidia/lib64/libnvidia-ml.so.1");
  EXPECT_EQ(settings.profile, "/usr/local/nvidia/share/drover-sim/profile.yaml");
  EXPECT_EQ(settings.faults, "/usr/local/nvidia/share/drover-sim/faults.yaml");
  EXPECT_EQ(settings.devices, "/dev");
}

TEST_F(MachineTest, WithoutADeviceFolderEveryGpuIsSeen) {
  auto settings = with_devices("dgx2");
  settings.devices.reset();
  EXPECT_EQ((*Machine::open(settings))->devices().size(), 16U);
}

TEST_F(MachineTest, GpusWithoutNodesAreHidden) {
  EXPECT_TRUE((*Machine::open(with_devices("dgx1-v100")))->devices().empty());
}

TEST_F(MachineTest, VisibleGpusAreCountedAnew) {
  // A plain file can be opened, as a node with a driver behind it can.
  std::ofstream(folder_ / "nvidia2");
  std::ofstream(folder_ / "nvidia5");
  const auto machine = *Machine::open(with_devices("dgx1-v100"));
  EXPECT_THAT(seen(*machine), testing::ElementsAre(testing::Pair(0, 2), testing::Pair(1, 5)));
}

TEST_F(MachineTest, ANodeWithoutADriverIsSeen) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make device nodes";
  const auto node = folder_ / "nvidia1";
  if (::mknod(node.c_str(), S_IFCHR | 0666, makedev(kNvidiaMajor, 1)) != 0)
    GTEST_SKIP() << "mknod is refused here: " << std::strerror(errno);
  if (const int fd = ::open(node.c_str(), 0); fd < 0 && errno == EPERM)
    GTEST_SKIP() << "this process's device cgroup denies 195:1";
  const auto machine = *Machine::open(with_devices("k80"));
  EXPECT_THAT(seen(*machine), testing::ElementsAre(testing::Pair(0, 1)));
}

TEST_F(MachineTest, ANodeThatMayNotBeOpenedIsHidden) {
  const auto node = folder_ / "nvidia0";
  std::ofstream(node).close();
  ::chmod(node.c_str(), 0);
  const bool root = ::geteuid() == 0;
  if (root) ASSERT_EQ(::seteuid(kNobody), 0);
  EXPECT_FALSE(may_open(node));
  if (root) ASSERT_EQ(::seteuid(0), 0);
}

TEST_F(MachineTest, AMissingProfileIsAnError) {
  EXPECT_EQ(Machine::open(with_devices("none")).error().kind, ErrorKind::kNotFound);
}

TEST_F(MachineTest, OnlyItsOwnHandlesAreFound) {
  auto settings = with_devices("k80");
  settings.devices.reset();
  const auto machine = *Machine::open(settings);
  nvmlDevice_st other;
  EXPECT_EQ(machine->find(&other), nullptr);
  EXPECT_EQ(machine->find(nullptr), nullptr);
  const auto* second = machine->devices()[1].get();
  EXPECT_EQ(machine->find(machine->devices()[1].get()), second);
  EXPECT_EQ(machine->index_of(*second), 1U);
}

}  // namespace
}  // namespace drover::sim

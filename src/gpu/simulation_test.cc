#include "gpu/simulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "base/fake_tree.h"
#include "base/files.h"
#include "gpu/device_files.h"
#include "gpu/discovery.h"
#include "gpu/simulated_devices.h"
#include "sim/live.h"

namespace drover::gpu {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

const SimulatorPlaces kPlaces{{DROVER_SIM_PROFILES}, {"/not/there.so", DROVER_SIM_LIBRARY}};

unsigned major_of(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 ? ::major(info.st_rdev) : 0;
}

std::vector<std::string> names_in(const std::string& folder) {
  return Directory::open(folder).value().list().value();
}

class SimulationTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "making device files needs root";
  }
  FakeTree state_;
};

TEST_F(SimulationTest, MakesAMachineThatDiscoveryReads) {
  const auto simulation = prepare_simulation("k80", state_.root(), kPlaces);
  ASSERT_TRUE(simulation) << to_string(simulation.error());
  EXPECT_EQ(simulation->profile, "k80");
  const auto inventory = discover(Nvml::load(simulation->nvml_library),
                                  {.kernel = std::nullopt, .simulation = simulation->profile});
  EXPECT_TRUE(inventory.simulated);
  ASSERT_EQ(inventory.devices.size(), 2U);
  for (const auto& device : inventory.devices) {
    EXPECT_EQ(device.unhealthy, "");
    ASSERT_TRUE(device.minor);
    EXPECT_TRUE(gpu_device_node(simulation->device_folder, *device.minor));
  }
  const auto control = control_device_nodes(simulation->device_folder);
  ASSERT_TRUE(control);
  EXPECT_EQ(control->size(), 3U);
}

TEST_F(SimulationTest, OnceMoreChangesNothing) {
  const auto first = prepare_simulation("k80", state_.root(), kPlaces);
  ASSERT_TRUE(first) << to_string(first.error());
  const auto library = first->driver_root + "/lib64/libnvidia-ml.so.1";
  const auto written = fs::last_write_time(library);
  const auto major = major_of(first->device_folder + "/nvidia-uvm");
  ASSERT_TRUE(write_file(state_ / "sim/faults.yaml", "0: {lost: true}\n"));
  ASSERT_TRUE(prepare_simulation("k80", state_.root(), kPlaces));
  EXPECT_EQ(fs::last_write_time(library), written);
  EXPECT_EQ(major_of(first->device_folder + "/nvidia-uvm"), major);
  EXPECT_EQ(*read_file(state_ / "sim/faults.yaml"), "0: {lost: true}\n");
}

TEST_F(SimulationTest, OnAFullDiskWhatIsThereIsEnough) {
  const auto files = [&] {
    std::map<std::string, ino_t> found;
    for (const auto& entry : fs::recursive_directory_iterator(state_ / "sim")) {
      struct stat info{};
      ::lstat(entry.path().c_str(), &info);
      found[entry.path()] = info.st_ino;
    }
    return found;
  };
  ASSERT_TRUE(prepare_simulation("dgx-a100", state_.root(), kPlaces));
  const auto before = files();
  ASSERT_TRUE(before.contains(state_ / "sim/mig-minors"));
  ASSERT_TRUE(prepare_simulation("dgx-a100", state_.root(), kPlaces));
  EXPECT_EQ(files(), before) << "nothing is written anew";
}

TEST_F(SimulationTest, AnotherProfileTakesThePlaceWholly) {
  ASSERT_TRUE(prepare_simulation("dgx1-v100", state_.root(), kPlaces));
  const auto simulation = prepare_simulation("k40m", state_.root(), kPlaces);
  ASSERT_TRUE(simulation) << to_string(simulation.error());
  EXPECT_THAT(names_in(simulation->device_folder),
              ElementsAre("nvidia-uvm", "nvidia-uvm-tools", "nvidia0", "nvidiactl"));
  EXPECT_THAT(
      names_in(simulation->driver_root + "/lib64"),
      ElementsAre("libcuda.so.1", "libcuda.so.390.30", "libnvidia-ml.so.1", "libnvidia-ml.so.390.30"));
  EXPECT_THAT(*read_file(simulation->profile_file), HasSubstr("name: k40m"));
}

TEST_F(SimulationTest, TheLiveFileIsForEverybodyAndIsKeptAsItMustBe) {
  const auto mask = ::umask(077);
  const auto simulation = prepare_simulation("k80", state_.root(), kPlaces);
  ::umask(mask);
  ASSERT_TRUE(simulation) << to_string(simulation.error());
  const fs::path file = simulation->live_file;
  struct stat made{};
  ASSERT_EQ(::lstat(file.c_str(), &made), 0);
  EXPECT_EQ(made.st_mode, S_IFREG | 0666U);
  const auto right = *read_file(file, sizeof(sim::LiveState));
  for (const std::string& spoilt : {std::string(), std::string("short"), std::string(right.size(), '\0')}) {
    std::ofstream(file) << spoilt;
    ASSERT_TRUE(keep_live_file(*simulation));
    EXPECT_EQ(*read_file(file, sizeof(sim::LiveState)), right);
  }
  fs::resize_file(file, 4ULL << 30);
  ASSERT_EQ(::chmod(file.c_str(), 0), 0);
  ASSERT_TRUE(prepare_simulation("k40m", state_.root(), kPlaces));
  struct stat kept{};
  ASSERT_EQ(::lstat(file.c_str(), &kept), 0);
  EXPECT_EQ(kept.st_ino, made.st_ino) << "containers that run have it";
  EXPECT_EQ(kept.st_size, made.st_size);
  EXPECT_EQ(kept.st_mode, made.st_mode);
}

TEST_F(SimulationTest, AMachineWithoutGpusIsOneToo) {
  FakeTree elsewhere;
  elsewhere.file("none.yaml",
                 "{name: none, driver: {version: '535.1', cuda: '12.2'}, models: {}, gpus: [], "
                 "host: {cpus: 1, memory_mib: 64, disk_mib: 64, numa: [{node: 0, cpus: '0'}]}}");
  const auto simulation = prepare_simulation(elsewhere / "none.yaml", state_.root(), kPlaces);
  ASSERT_TRUE(simulation) << to_string(simulation.error());
  EXPECT_THAT(names_in(simulation->device_folder),
              ElementsAre("nvidia-uvm", "nvidia-uvm-tools", "nvidiactl"));
  const auto inventory = discover(Nvml::load(simulation->nvml_library),
                                  {.kernel = std::nullopt, .simulation = simulation->profile});
  EXPECT_TRUE(inventory.devices.empty());
  EXPECT_TRUE(inventory.problems.empty());
}

TEST_F(SimulationTest, TakesThePathOfAProfile) {
  FakeTree elsewhere;
  elsewhere.file("mine.yaml", *read_file(std::string(DROVER_SIM_PROFILES) + "/k40m.yaml"));
  EXPECT_TRUE(prepare_simulation(elsewhere / "mine.yaml", state_.root(), kPlaces));
  EXPECT_EQ(prepare_simulation(elsewhere / "other.yaml", state_.root(), kPlaces).error().kind,
            ErrorKind::kNotFound);
}

TEST_F(SimulationTest, UnknownProfilesLeaveNothingBehind) {
  const auto simulation = prepare_simulation("k40n", state_.root(), kPlaces);
  ASSERT_FALSE(simulation);
  EXPECT_EQ(simulation.error().message, "there is no simulator profile 'k40n'");
  EXPECT_THAT(simulation.error().hint, HasSubstr("did you mean 'k40m'? known are dgx-a100, "));
  FakeTree broken;
  broken.file("bad.yaml", "gpus: 3\n");
  EXPECT_FALSE(prepare_simulation(broken / "bad.yaml", state_.root(), kPlaces));
  EXPECT_THAT(names_in(state_.root()), ElementsAre());
}

TEST_F(SimulationTest, SimulatorThatIsNotInstalledIsSaid) {
  const auto simulation =
      prepare_simulation("k40m", state_.root(), {{DROVER_SIM_PROFILES}, {"/not/there.so"}});
  ASSERT_FALSE(simulation);
  EXPECT_THAT(to_string(simulation.error()), HasSubstr("/not/there.so"));
}

TEST_F(SimulationTest, NoNodeLeadsToADriverThatThisMachineHas) {
  ASSERT_TRUE(make_simulated_devices(state_ / "dev", {0}, {195, 120, 508}));
  EXPECT_EQ(major_of(state_ / "dev/nvidia0"), 121U);
  EXPECT_EQ(major_of(state_ / "dev/nvidiactl"), 121U);
  EXPECT_EQ(major_of(state_ / "dev/nvidia-uvm"), 122U);
  // A driver that comes later moves them again.
  ASSERT_TRUE(make_simulated_devices(state_ / "dev", {0}, {195, 120, 122}));
  EXPECT_EQ(major_of(state_ / "dev/nvidia0"), 121U);
  EXPECT_EQ(major_of(state_ / "dev/nvidia-uvm"), 123U);
  ASSERT_TRUE(make_simulated_devices(state_ / "dev", {0}, {}));
  EXPECT_EQ(major_of(state_ / "dev/nvidia0"), 195U);
}

TEST(MajorsTest, ReadsCharacterDriversOnly) {
  EXPECT_EQ(majors_in_use("Character devices:\n  1 mem\n195 nvidia-frontend\n\nBlock devices:\n  7 loop\n"),
            (std::set<unsigned>{1, 195}));
  EXPECT_EQ(majors_in_use(""), std::set<unsigned>{});
}

}  // namespace
}  // namespace drover::gpu

#include "container/hidden_paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace drover::container {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(HiddenPaths, FindsEveryProcessorThatCountsItsHeat) {
  std::string cpus = std::filesystem::temp_directory_path() / "drover-cpus-XXXXXX";
  ASSERT_NE(::mkdtemp(cpus.data()), nullptr);
  for (const char* folder :
       {"/cpu1/thermal_throttle", "/cpu0/thermal_throttle", "/cpu2/topology", "/cpufreq"})
    std::filesystem::create_directories(cpus + folder);
  EXPECT_THAT(thermal_folders(cpus),
              ElementsAre(cpus + "/cpu0/thermal_throttle", cpus + "/cpu1/thermal_throttle"));
  std::filesystem::remove_all(cpus);
  EXPECT_THAT(thermal_folders(cpus), IsEmpty());
}

TEST(HiddenPaths, CoversTheFolderOfTheSocketUnlessOthersNeedIt) {
  std::string folder = std::filesystem::temp_directory_path() / "drover-socket-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const auto socket = folder + "/socket";
  EXPECT_EQ(place_to_hide(socket), folder);
  std::ofstream(socket) << "";
  EXPECT_EQ(place_to_hide(socket), folder);
  std::ofstream(folder + "/other") << "";
  EXPECT_EQ(place_to_hide(socket), socket);
  std::filesystem::remove_all(folder);
  EXPECT_EQ(place_to_hide(socket), socket);
  EXPECT_EQ(place_to_hide("socket"), "socket");
}

TEST(HiddenPaths, MasksWhatTellsOfOthersAndTheHeatOfProcessors) {
  EXPECT_THAT(
      masked_paths({"/sys/devices/system/cpu/cpu0/thermal_throttle"}),
      AllOf(Contains("/proc/kcore"), Contains("/proc/interrupts"), Contains("/sys/devices/virtual/powercap"),
            Contains("/sys/devices/system/cpu/cpu0/thermal_throttle")));
  EXPECT_THAT(read_only_paths(), AllOf(Contains("/proc/sys"), Contains("/proc/sysrq-trigger")));
}

}  // namespace
}  // namespace drover::container

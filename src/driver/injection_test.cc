#include "driver/injection.h"

#include <gtest/gtest.h>

namespace drover::driver {
namespace {

using Labels = std::map<std::string, std::string>;

TEST(WantsVolumeTest, LabelDecidesWhateverItsValue) {
  EXPECT_FALSE(wants_volume({}, {}));
  EXPECT_FALSE(wants_volume({{"PATH", "/bin"}}, Labels{{"com.nvidia.volumes", "nvidia_driver"}}));
  EXPECT_TRUE(wants_volume({}, Labels{{"com.nvidia.volumes.needed", "nvidia_driver"}}));
  EXPECT_TRUE(wants_volume({}, Labels{{"com.nvidia.volumes.needed", ""}}));
}

TEST(WantsVolumeTest, VariableComesBeforeTheLabel) {
  const Labels label{{"com.nvidia.volumes.needed", "nvidia_driver"}};
  for (const auto* yes : {"all", "none", "0", "GPU-1234"})
    EXPECT_TRUE(wants_volume({{"NVIDIA_VISIBLE_DEVICES", yes}}, {})) << yes;
  for (const auto* no : {"", "void"})
    EXPECT_FALSE(wants_volume({{"NVIDIA_VISIBLE_DEVICES", no}}, label)) << no;
}

TEST(WantsVolumeTest, FirstVariableCounts) {
  EXPECT_FALSE(wants_volume({{"NVIDIA_VISIBLE_DEVICES", "void"}, {"NVIDIA_VISIBLE_DEVICES", "all"}}, {}));
  EXPECT_TRUE(wants_volume({{"NVIDIA_VISIBLE_DEVICES", "all"}, {"NVIDIA_VISIBLE_DEVICES", "void"}}, {}));
}

TEST(VolumeEnvironmentTest, AppendsToWhatTheImageHas) {
  const auto environment = volume_environment({{"PATH", "/opt/bin:/bin"}, {"LD_LIBRARY_PATH", "/opt/lib"}});
  EXPECT_EQ(environment.at("PATH"), "/opt/bin:/bin:/usr/local/nvidia/bin");
  EXPECT_EQ(environment.at("LD_LIBRARY_PATH"),
            "/opt/lib:/usr/local/cuda/compat:/usr/local/nvidia/lib:/usr/local/nvidia/lib64");
}

TEST(VolumeEnvironmentTest, AppendsNothingTwice) {
  const Environment image{{"PATH", "/usr/local/nvidia/bin:/bin"},
                          {"LD_LIBRARY_PATH", "/usr/local/nvidia/lib64:/usr/local/nvidia/lib"}};
  const auto environment = volume_environment(image);
  EXPECT_EQ(environment.at("PATH"), "/usr/local/nvidia/bin:/bin");
  EXPECT_EQ(environment.at("LD_LIBRARY_PATH"),
            "/usr/local/nvidia/lib64:/usr/local/nvidia/lib:/usr/local/cuda/compat");
  EXPECT_EQ(volume_environment({environment.begin(), environment.end()}), environment);
}

TEST(VolumeEnvironmentTest, ImageWithoutPathKeepsTheUsualOne) {
  const auto environment = volume_environment({});
  EXPECT_EQ(environment.at("PATH"),
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/nvidia/bin");
  EXPECT_EQ(environment.at("LD_LIBRARY_PATH"),
            "/usr/local/cuda/compat:/usr/local/nvidia/lib:/usr/local/nvidia/lib64");
}

TEST(VolumeEnvironmentTest, ACompatibilityPackageThatIsOlderThanTheDriverIsLeftOut) {
  EXPECT_EQ(volume_environment({}, false).at("LD_LIBRARY_PATH"),
            "/usr/local/nvidia/lib:/usr/local/nvidia/lib64");
}

TEST(VolumeEnvironmentTest, LastOfTwoCounts) {
  EXPECT_EQ(volume_environment({{"PATH", "/first"}, {"PATH", "/last"}}).at("PATH"),
            "/last:/usr/local/nvidia/bin");
}

}  // namespace
}  // namespace drover::driver

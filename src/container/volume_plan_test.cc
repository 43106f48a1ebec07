#include "container/volume_plan.h"

#include <gtest/gtest.h>

namespace drover::container {
namespace {

Result<std::vector<VolumePlan>> plan(const std::string& container_path, const image::Image* image) {
  Launch launch;
  launch.task.volumes = {{container_path, "/srv/data", true}};
  return plan_volumes(launch, image, "/state/tasks/t/sandbox");
}

TEST(VolumePlan, GoesToItsPlace) {
  const image::Image image;
  EXPECT_EQ((*plan("/data//x/./y/", &image)),
            (std::vector<VolumePlan>{{"/srv/data", "/data/x/y", "", true}}));
  EXPECT_EQ((*plan("in/side", &image)),
            (std::vector<VolumePlan>{{"/srv/data", "/mnt/mesos/sandbox/in/side", "in/side", true}}));
  EXPECT_EQ((*plan("in", nullptr)),
            (std::vector<VolumePlan>{{"/srv/data", "/state/tasks/t/sandbox/in", "in", true}}));
}

TEST(VolumePlan, CoversNothingThatIsolationRestsOn) {
  const image::Image image;
  for (const char* path : {"/", "/proc", "/proc/sys", "/sys", "/dev", "/dev/shm", "/mnt", "/mnt/mesos",
                           "/mnt/mesos/sandbox", ".", "./", "//proc/", "/a/../dev"}) {
    const auto refused = plan(path, &image);
    ASSERT_FALSE(refused) << path;
    EXPECT_EQ(refused.error().path, "/volumes/0/container_path");
  }
  EXPECT_FALSE(plan("/state", nullptr));
  EXPECT_FALSE(plan("/state/tasks/t/sandbox", nullptr));
  EXPECT_TRUE(plan("/usr/local/nvidia", &image));  // nothing of the driver is there without GPUs
}

TEST(VolumePlan, TheDriverVolumeIsNotCovered) {
  image::Image image;
  image.config.labels["com.nvidia.volumes.needed"] = "nvidia_driver";
  Launch launch;
  launch.gpu_devices.push_back({});
  launch.driver.volume = [] { return std::vector<HostMount>{}; };
  for (const char* path : {"/usr", "/usr/local", "/usr/local/nvidia", "/usr/local/nvidia/lib"}) {
    launch.task.volumes = {{path, "/srv/data", false}};
    EXPECT_FALSE(plan_volumes(launch, &image, "/s")) << path;
  }
}

}  // namespace
}  // namespace drover::container

#include "container/driver_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drover::container {
namespace {

using ::testing::HasSubstr;

Launch launch_on_a_k40m() {
  Launch launch;
  gpu::Device device;
  device.model = "Tesla K40m";
  device.compute_capability = gpu::ComputeCapability{3, 5};
  launch.machine = {"390.30", "9.1", {device}, {}};
  return launch;
}

/// As a Docker Engine tells of its images: their configurations, and not where their layers are.
image::Image image_of_engine(const std::string& name, const std::string& value) {
  image::Image image;
  image.reference = "tool:1";
  image.config.environment = {{name, value}};
  return image;
}

TEST(DriverCheck, RefusesWhatTheEnvironmentOfAnEnginesImageRules) {
  const auto launch = launch_on_a_k40m();
  for (const auto& [name, value] :
       {std::pair("NVIDIA_REQUIRE_CUDA", "driver>=410.48"), std::pair("CUDA_VERSION", "10.2.89")}) {
    const auto checked = check_driver(launch, image_of_engine(name, value));
    ASSERT_FALSE(checked) << name;
    EXPECT_EQ(checked.error().kind, ErrorKind::kUnsupported);
    const auto said = to_string(checked.error());
    EXPECT_THAT(said, HasSubstr("Image 'tool:1' does not work here"));
    EXPECT_THAT(said, HasSubstr(value));
    EXPECT_THAT(said, HasSubstr("390.30"));
  }
  EXPECT_TRUE(check_driver(launch, image_of_engine("NVIDIA_REQUIRE_CUDA", "driver>=384")));
}

TEST(DriverCheck, TheTasksEnvironmentComesAfterTheImages) {
  auto launch = launch_on_a_k40m();
  launch.task.environment = {{"NVIDIA_DISABLE_REQUIRE", "1"}};
  EXPECT_TRUE(check_driver(launch, image_of_engine("NVIDIA_REQUIRE_CUDA", "driver>=410.48")));
}

TEST(DriverCheck, TasksWithoutGpusAreNotCompared) {
  auto launch = launch_on_a_k40m();
  launch.machine.devices.clear();
  EXPECT_TRUE(check_driver(launch, image_of_engine("NVIDIA_REQUIRE_CUDA", "driver>=410.48")));
}

TEST(DriverCheck, WhatIsFoundInTheImageIsComparedHoweverItIsLookedInto) {
  auto launch = launch_on_a_k40m();
  launch.task.driver = workload::DriverSource::kNone;
  const auto image = image_of_engine("CUDA_VERSION", "9.1.85");
  for (const auto& [version, wrong] :
       {std::pair("390.30", ""), std::pair("396.44", "396.44"), std::pair("", "--driver none")}) {
    const FolderLister list = [&](const std::string& folder, const auto& wanted) {
      std::vector<image::MergedEntry> entries;
      const auto name = std::string("libcuda.so.") + version;
      if (folder == "/usr/lib64" && wanted(name))
        entries.push_back({name, image::MergedEntry::Kind::kFile, 1});
      return Result<std::vector<image::MergedEntry>>(entries);
    };
    const auto checked = check_driver(launch, image, list);
    EXPECT_EQ(checked.has_value(), std::string(wrong).empty()) << version;
    if (!checked) EXPECT_THAT(to_string(checked.error()), HasSubstr(wrong));
  }
}

}  // namespace
}  // namespace drover::container

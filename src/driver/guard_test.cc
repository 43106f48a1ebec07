#include "driver/guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drover::driver {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Key;

const Guard kGuard = {{"/g/libcuda.so.1", "libcuda.so.1", "libdrover-driver-cuda.so.1"},
                      {"/g/libnvidia-ml.so.1", "libnvidia-ml.so.1", "libdrover-driver-ml.so.1"}};

HostFiles host_files() {
  HostFiles files;
  files.version = "535.1";
  for (const char* path :
       {"/usr/lib64/libcuda.so.535.1", "/usr/lib64/libnvidia-ml.so.535.1", "/usr/bin/nvidia-smi"})
    files.files.push_back({std::string("/root") + path, path});
  files.links = {{"/usr/lib64/libcuda.so", "libcuda.so.1"},
                 {"/usr/lib64/libcuda.so.1", "libcuda.so.535.1"},
                 {"/usr/lib64/libnvidia-ml.so.1", "libnvidia-ml.so.535.1"}};
  return files;
}

TEST(GuardTest, IsWhereTheDriversFileWasAndThatIsElsewhere) {
  const auto before = host_files();
  const auto files = guarded(before, kGuard);
  ASSERT_TRUE(files) << to_string(files.error());
  EXPECT_THAT(files->files, ElementsAre(HostFile{"/root/usr/bin/nvidia-smi", "/usr/bin/nvidia-smi"},
                                        HostFile{"/g/libcuda.so.1", "/usr/lib64/libcuda.so.535.1"},
                                        HostFile{"/g/libnvidia-ml.so.1", "/usr/lib64/libnvidia-ml.so.535.1"},
                                        HostFile{"/root/usr/lib64/libcuda.so.535.1",
                                                 "/usr/local/nvidia/guard/libdrover-driver-cuda.so.1"},
                                        HostFile{"/root/usr/lib64/libnvidia-ml.so.535.1",
                                                 "/usr/local/nvidia/guard/libdrover-driver-ml.so.1"}));
  EXPECT_EQ(files->links, before.links);
}

/// One that is found twice, as below /usr/lib64 and a folder for compatibility, is guarded in both places.
TEST(GuardTest, NoCopyOfADriversFileIsLeft) {
  auto files = host_files();
  files.files.push_back({"/root/opt/libcuda.so.535.1", "/opt/libcuda.so.535.1"});
  files.links.push_back({"/opt/libcuda.so.1", "libcuda.so.535.1"});
  const auto made = guarded(files, kGuard);
  ASSERT_TRUE(made);
  EXPECT_THAT(made->files, Contains(HostFile{"/g/libcuda.so.1", "/opt/libcuda.so.535.1"}));
}

TEST(GuardTest, OnTheMachineItselfItLiesOverTheDriversFiles) {
  auto files = host_files();
  files.files.push_back({"/root/opt/libcuda.so.535.1", "/opt/libcuda.so.535.1"});
  files.files.push_back({"/root/opt/libcuda.so.535.1", "/usr/opt/libcuda.so.535.1"});
  files.links.push_back({"/opt/libcuda.so.1", "libcuda.so.535.1"});
  files.links.push_back({"/usr/opt/libcuda.so.1", "libcuda.so.535.1"});
  const auto made = guard_on_host(files, kGuard);
  ASSERT_TRUE(made) << to_string(made.error());
  EXPECT_THAT(
      *made,
      ElementsAre(
          HostFile{"/root/usr/lib64/libcuda.so.535.1", "/run/drover-guard/libdrover-driver-cuda.so.1"},
          HostFile{"/g/libcuda.so.1", "/root/opt/libcuda.so.535.1"},
          HostFile{"/g/libcuda.so.1", "/root/usr/lib64/libcuda.so.535.1"},
          HostFile{"/root/usr/lib64/libnvidia-ml.so.535.1", "/run/drover-guard/libdrover-driver-ml.so.1"},
          HostFile{"/g/libnvidia-ml.so.1", "/root/usr/lib64/libnvidia-ml.so.535.1"}));
  files.links.clear();
  EXPECT_FALSE(guard_on_host(files, kGuard));
}

TEST(GuardTest, ADriverThatItDoesNotFitIsRefused) {
  auto files = host_files();
  std::erase_if(files.links, [](const auto& link) { return link.path.ends_with("libnvidia-ml.so.1"); });
  const auto made = guarded(files, kGuard);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind, ErrorKind::kUnsupported);
  EXPECT_THAT(made.error().message, HasSubstr("libnvidia-ml.so.1"));
  EXPECT_FALSE(guarded_places({}, kGuard));
}

TEST(GuardTest, TakesPlacesInAVolume) {
  DriverFiles files;
  for (const char* path : {"lib64/libcuda.so.535.1", "lib/libcuda.so.535.1", "lib64/libnvidia-ml.so.535.1"})
    files.files.push_back({std::string("/usr/") + path, path});
  files.links = {{"lib/libcuda.so.1", "libcuda.so.535.1"},
                 {"lib64/libcuda.so.1", "libcuda.so.535.1"},
                 {"lib64/libnvidia-ml.so.1", "libnvidia-ml.so.535.1"}};
  const auto places = guarded_places(files, kGuard);
  ASSERT_TRUE(places) << to_string(places.error());
  EXPECT_THAT(*places, ElementsAre(Key("lib64/libcuda.so.535.1"), Key("lib64/libnvidia-ml.so.535.1")));
}

}  // namespace
}  // namespace drover::driver
